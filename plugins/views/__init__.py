"""The views: what answers the addresses of `routes.py`, one module for each thing a visitor meets."""
