"""Budgets: what a store may use in a day, a week or a month (`budget`), and what was used of it (`spending`)."""
