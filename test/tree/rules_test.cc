// Each rule finds what it is there to find, and lets pass what it must.
#include "rules.h"

#include <catch2/catch.hpp>

#include "source_text.h"

namespace pif::tree {
namespace {

const Dependencies kHouse = {
    {"base", {}}, {"net", {"base", "proto"}}, {"proto", {}}, {"lfs", {"base", "net", "proto"}}, {"cluster", {"base"}}};

// A tree with a few headers to include, and one file more.
Tree with(const std::string& path, const std::string& text) {
  Tree tree = {{"base/include/pif/base/ids.h", "#pragma once\n"},
               {"net/include/pif/net/net.h", "#pragma once\n"},
               {"lfs/include/pif/lfs/lfs.h", "#pragma once\n"},
               {"lfs/src/inner.h", "#pragma once\n"},
               {"lfs/src/user.cc", "#include \"inner.h\"\n"},
               {"cluster/include/pif/cluster/cluster.h", "#pragma once\n"},
               {"proto/messages.proto", ""}};
  tree[path] = text;
  return tree;
}

std::string first(const Offences& offences) { return offences.empty() ? "" : offences[0].to_string(); }

TEST_CASE("an include of a folder that may not be used is found at its line") {
  CHECK(first(check_includes(with("net/src/a.cc", "// x\n#include <vector>\n#include \"pif/lfs/lfs.h\"\n"), kHouse)) ==
        "net/src/a.cc:3: net may not use lfs: pif/lfs/lfs.h");
  CHECK(first(check_includes(with("base/include/pif/base/x.h", "# include <pif/net/net.h>\n"), kHouse)) ==
        "base/include/pif/base/x.h:1: base may not use net: pif/net/net.h");
}

TEST_CASE("includes that the table allows pass") {
  CHECK(check_includes(with("net/src/a.cc",
                            "#include \"pif/base/ids.h\"\n#include \"pif/proto/messages.pb.h\"\n"
                            "#include \"pif/net/net.h\"\n"),
                       kHouse)
            .empty());
  CHECK(check_includes(with("test/net/a_test.cc", "#include \"pif/lfs/lfs.h\"\n"), kHouse).empty());
}

TEST_CASE("a daemon's main may use cluster, but the rest of its folder may not") {
  CHECK(check_includes(with("lfs/main/a.cc", "#include \"pif/cluster/cluster.h\"\n"), kHouse).empty());
  CHECK(check_includes(with("lfs/src/a.cc", "#include \"pif/cluster/cluster.h\"\n"), kHouse).size() == 1);
}

TEST_CASE("a private header of another folder is found however it is written") {
  CHECK(first(check_includes(with("net/src/a.cc", "#include \"../../lfs/src/inner.h\"\n"), kHouse)) ==
        "net/src/a.cc:1: includes a private header of lfs: ../../lfs/src/inner.h");
  CHECK(check_includes(with("net/src/a.cc", "#include \"inner.h\"\n"), kHouse).size() == 1);
  CHECK(check_includes(with("lfs/main/a.cc", "#include \"inner.h\"\n"), kHouse).empty());
  CHECK(check_includes(with("lfs/include/pif/lfs/x.h", "#include \"inner.h\"\n"), kHouse).size() == 1);
}

TEST_CASE("a header generated from the folder's own protocol passes") {
  Tree tree = with("lfs/src/a.cc", "#include \"own.pb.h\"\n");
  CHECK(check_includes(tree, kHouse).size() == 1);
  tree["lfs/proto/own.proto"] = "";
  CHECK(check_includes(tree, kHouse).empty());
}

TEST_CASE("a public header that is not there is found") {
  CHECK(first(check_includes(with("lfs/src/a.cc", "#include \"pif/base/gone.h\"\n"), kHouse)) ==
        "lfs/src/a.cc:1: no folder has a public header pif/base/gone.h");
}

TEST_CASE("a room that uses what its table does not say, or what lies above it, is found") {
  const Rooms rooms = {{"lfs/src", {{"store", {}}, {"append", {"store"}}}}};
  Tree tree = {{"lfs/src/store/batch.h", "#pragma once\n"},
               {"lfs/src/append/sequencer.h", "#pragma once\n#include \"store/batch.h\"\n"},
               {"lfs/src/top.h", "#pragma once\n#include \"append/sequencer.h\"\n"}};
  CHECK(check_rooms(tree, rooms).empty());
  tree["lfs/src/store/a.cc"] = "#include \"append/sequencer.h\"\n";
  CHECK(first(check_rooms(tree, rooms)) == "lfs/src/store/a.cc:1: store may not use append: append/sequencer.h");
  tree["lfs/src/store/a.cc"] = "\n#include \"top.h\"\n";
  CHECK(first(check_rooms(tree, rooms)) == "lfs/src/store/a.cc:2: store uses what lies above the rooms: top.h");
  tree.erase("lfs/src/store/a.cc");
  tree["lfs/src/cellar/a.cc"] = "";
  CHECK(first(check_rooms(tree, rooms)) ==
        "lfs/src/cellar/a.cc:1: a room that docs/ARCHITECTURE.md does not have: lfs/src/cellar");
}

TEST_CASE("tables of rooms: one that goes round in a circle is refused") {
  const std::string head = "| `lfs/src/a/` | first | b |\n| `lfs/src/b/` | second |";
  CHECK(parse_rooms(head + " |\n").value().at("lfs/src").at("a").count("b") == 1);
  CHECK(parse_rooms(head + " a |\n").error().text == "lfs/src/a may use itself, by way of others");
  CHECK(parse_rooms(head + " c |\n").error().text == "lfs/src/b may use c, which is no room there");
}

TEST_CASE("headers without a guard and private headers without a user are found") {
  CHECK(check_headers(with("lfs/src/a.cc", "")).empty());
  CHECK(first(check_headers(with("base/include/pif/base/a.h", "int x;\n"))) ==
        "base/include/pif/base/a.h:1: a header that may not be included twice");
  CHECK(first(check_headers(with("lfs/src/dead.h", "#pragma once\n"))) ==
        "lfs/src/dead.h:1: a private header that nobody includes");
}

std::string lines(std::size_t count, const std::string& line = "\n") {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += line;
  return text;
}

TEST_CASE("files over 600 lines are found") {
  CHECK(check_lengths({{"lfs/src/a.cc", lines(600)}}).empty());
  CHECK(first(check_lengths({{"lfs/src/a.cc", lines(601)}})) == "lfs/src/a.cc:601: a file of 601 lines");
  CHECK(check_lengths({{"test/x/a.py", lines(601)}}).size() == 1);
}

TEST_CASE("lines over 120 columns are found") {
  CHECK(check_lengths({{"lfs/src/a.cc", std::string(120, ' ') + "\n"}}).empty());
  CHECK(first(check_lengths({{"lfs/src/a.cc", "\n" + std::string(121, ' ') + "\n"}})) ==
        "lfs/src/a.cc:2: a line of 121 columns");
}

TEST_CASE("functions over 70 lines are found, in namespaces, in classes and with initialisers") {
  const std::string body = lines(69, "  if (x) { y(); }\n") + "}\n";
  CHECK(first(check_lengths({{"lfs/src/a.cc",
                              "int x;\n\nint f(int a,\n"
                              "      int b) {\n" +
                                  body}})) == "lfs/src/a.cc:3: a function of 72 lines");
  CHECK(check_lengths({{"lfs/src/a.cc", "namespace a {\nint f() {\n" + body + "}\n"}}).size() == 1);
  CHECK(check_lengths({{"lfs/src/a.cc", "class A : B {\n int f() const override {\n" + body + "};\n"}}).size() == 1);
  CHECK(check_lengths({{"lfs/src/a.cc", "A::A(int x) : b_{x}, c_(x) {\n" + body}}).size() == 1);
  CHECK(check_lengths({{"lfs/src/a.cc", "int f() {\n" + lines(68) + "}\nint g() {\n" + lines(68) + "}\n"}}).empty());
  CHECK(check_lengths({{"lfs/src/a.cc", "namespace a {\n" + lines(100, "int f();\n") + "}\n"}}).empty());
}

TEST_CASE("marks of unfinished work are found in code, comments and scripts, but not inside words") {
  for (const std::string& mark :
       {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("X") + "XX", std::string("HA") + "CK"}) {
    CHECK(first(check_leftovers({{"a.py", "x\n# " + mark + ": later\n"}})) == "a.py:2: left to do: " + mark);
    CHECK(check_leftovers({{"a.cc", "int s" + mark + "s;\n"}}).empty());
  }
  CHECK(check_leftovers({{"a.cc", "\"/tmp/" + std::string(6, 'X') + "\"\n"}}).empty());
}

TEST_CASE("a placement computed elsewhere is found") {
  for (const std::string expression :
       {"n % width", "n %layout.width()", "n % file->layout().width()", "n %= nodes.size()", "i % cluster.lfss.size()"})
    CHECK(first(check_placement({{"client/src/a.cc", "\nint x = " + expression + ";\n"}})) ==
          "client/src/a.cc:2: computes a placement: only base/ and parity/ do");
  CHECK(check_placement({{"parity/src/a.cc", "n % width;"}}).empty());
  CHECK(check_placement({{"client/src/a.cc", "n % 8; // n % width\nlog(\"%width\"); a % b; width % 2;"}}).empty());
}

TEST_CASE("banned calls are found with their line") {
  CHECK(first(check_calls({{"lfs/src/a.cc", "void f() {\n  std::system(\"ls\");\n}\n"}})) ==
        "lfs/src/a.cc:2: std::system(): runs a shell");
  for (const std::string call :
       {"strcpy(a, b)", "sprintf(a, b)", "std::strcat(a, b)", "::fork()", "return fork()", "usleep(3)",
        "std::this_thread::sleep_for(x)", "::sleep(1)", "std::exit(1)", "std::abort()", "popen(x, y)"})
    CHECK(check_calls({{"test/lfs/a.cc", "int f() { " + call + "; }"}}).size() == 1);
}

TEST_CASE("a message, a field or a constant that the protocol's document only imagines is found") {
  const Tree tree = {{"proto/messages.proto",
                      "message Read {\n  uint64 file = 1;  // uint64 row = 2;\n  message One { uint64 in = 1; }\n"
                      "  oneof what { bytes body = 3; }\n}\n"},
                     {"base/include/pif/base/limits.h", "constexpr int kBodyBytesMax = 1;\n"}};
  const auto named = [&](const std::string& text) {
    Tree with = tree;
    with["docs/PROTOCOL.md"] = "# Protocol\n" + text + "\n";
    return first(check_protocol(with));
  };
  for (const std::string good : {"`Read`", "`Read.file` and `Read{file}`", "`Read.body`", "`One.in`", "`kBodyBytesMax`",
                                 "`SO_PEERCRED`", "`busy`", "Write", "`--insecure-loopback`", "`pif fsck`"})
    CHECK(named(good) == "");
  CHECK(named("`Read`, `Write`") == "docs/PROTOCOL.md:2: no .proto file has a message Write");
  CHECK(named("`Read.row`") == "docs/PROTOCOL.md:2: Read has no field row");
  CHECK(named("`Read.in`") == "docs/PROTOCOL.md:2: Read has no field in");
  CHECK(named("`kBodyBytes`") == "docs/PROTOCOL.md:2: no constant of the code is called kBodyBytes");
  CHECK(first(check_protocol({})) == "docs/PROTOCOL.md:1: is not there");
}

TEST_CASE("a sleep in a test's script is found") {
  CHECK(check_calls({{"test/system/a.py", "import time\ntime.sleep(1)\n"}}).size() == 1);
  CHECK(check_calls({{"scripts/a.py", "time.sleep(1)\n"}}).empty());
}

TEST_CASE("calls that only look banned pass") {
  for (const std::string call : {"file.abort()", "x->system(1)", "const System system(1)", "snprintf(a, 1, b)",
                                 "my::fork()", "forks()", "/* fork() */", "\"system(\"", "int system(int x)"})
    CHECK(check_calls({{"lfs/src/a.cc", "void f() { " + call + "; }"}}).empty());
  CHECK(check_calls({{"tools/pif/a.cc", "void f() { std::exit(2); std::this_thread::sleep_for(x); }"}}).empty());
  CHECK(check_calls({{"lfs/main/a.c", "void f() { _exit(2); }"}}).empty());
}

TEST_CASE("code is told from comments, strings, characters and digit separators") {
  CHECK(code_only("a//b\nc") == "a   \nc");
  CHECK(code_only("a/*b\n*/c") == "a   \n  c");
  CHECK(code_only("f(\"a\\\"b\", 'x', '\\'')") == "f(      ,    ,     )");
  CHECK(code_only("1'000'000+x") == "1'000'000+x");
  CHECK(code_only("R\"q(a\"b)q\"+c") == "          +c");
  CHECK(code_only("#define A \\\n  b\nc") == "           \n   \nc");
}

TEST_CASE("the table of the architecture is read") {
  const auto house = parse_dependencies(
      "| folder | what | may use |\n|---|---|---|\n| `a/` | x | |\n| `b/` | y | a |\n"
      "| `c/` | z | a, b |\n| `d/` | z | c and what it may use |\n"
      "| `e/` | z | everything but b, c |\n");
  REQUIRE(house);
  CHECK(house->at("a").empty());
  CHECK(house->at("c") == std::set<std::string>{"a", "b"});
  CHECK(house->at("d") == std::set<std::string>{"a", "b", "c"});
  CHECK(house->at("e") == std::set<std::string>{"a", "d", "e"});
}

TEST_CASE("an architecture without the table, or with a folder that is not in it, is refused") {
  CHECK_FALSE(parse_dependencies("# Architecture\n"));
  CHECK(parse_dependencies("| `a/` | x | |\n| `b/` | y | bass |\n").error().text ==
        "b may use bass, which is not a folder of the table");
}

}  // namespace
}  // namespace pif::tree
