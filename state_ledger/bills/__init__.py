"""A provider's bill beside the books: read line by line, summed by day and model, compared.

Nothing of a bill is stored. A line that cannot be meant is an error with its number; a line that the books
have nothing for is shown as such, never dropped.
"""

from __future__ import annotations

from state_ledger.bills.bill import Bill, BillError, read_file, read_text
from state_ledger.bills.comparison import Comparison, Row, compare

__all__ = ["Bill", "BillError", "Comparison", "Row", "compare", "read_file", "read_text"]
