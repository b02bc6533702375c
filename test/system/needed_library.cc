// What needs_library.cc needs.
int needed_number() { return 7; }
