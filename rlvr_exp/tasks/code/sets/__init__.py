"""One reader per public set, chosen by the keys of the rows or by the folders."""
