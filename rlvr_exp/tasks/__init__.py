"""What is asked: tasks as frozen data, and one domain per kind of task that loads, words and reads them back."""
