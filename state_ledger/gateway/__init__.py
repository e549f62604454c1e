"""What a messaging gateway keeps in a store: routes, peers, handed-over sessions, Telegram topics."""
