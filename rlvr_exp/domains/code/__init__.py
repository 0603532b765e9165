"""The code domain: public sets of programs to write, to repair and to edit, in their own file formats."""
