// Every test program's main; Catch2's own is compiled once, here.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
