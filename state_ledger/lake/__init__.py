"""The books of many stores, on many hosts, as Parquet files in one place: written by each host, read by engines."""
