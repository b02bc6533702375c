// What the test programs share is precompiled with this one, which does nothing.
int main() { return 0; }
