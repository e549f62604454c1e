"""Opening a store to write, its writer, and keeping out of the way of other writers."""
