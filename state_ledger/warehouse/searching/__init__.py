"""Searching the messages of a fleet: the query language and the matches of a store's own search, over a warehouse.

`finding.find` answers. The engine offers messages by a condition that none which matches can miss (`needed`,
`conditions`), by its text index where it has one (`index`); what matches is decided on the text by
`state_ledger.search.match`, as for one store.
"""
