"""The embedded corpus of coding problems: functions on numbers, lists and texts, with the texts of every stage of reasoning."""
