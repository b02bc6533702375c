// What the test programs share is precompiled with this file.
