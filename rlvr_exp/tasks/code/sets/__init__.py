"""One reader per public set, told apart by the keys of their rows or by their folders."""
