"""What each page shows, without the web: figures asked from the named questions, as dataclasses.

The plugins turn these into HTML; a notebook or a test can use them as they are.
"""
