// The checker of names knows what could have happened and what could not.
#include <catch2/catch.hpp>

#include "simulate/names.h"

namespace pif::simulate {
namespace {

using Kind = NameOp::Kind;

Time at(int t) { return Time(std::chrono::seconds(t)); }

class Names {
 public:
  Names() {
    for (const char* path : {"/a", "/b", "/d", "/d/x", "/e", "/e/x"}) paths.add(path);
  }
  NameOp& op(Kind kind, const std::string& path, int begin, int end) {
    NameOp out;
    out.paths = &paths;
    out.kind = kind;
    out.path = *paths.find(path);
    out.begin = at(begin);
    out.end = end == 0 ? kNever : at(end);
    return ops.emplace_back(out);
  }
  void publish(const std::string& path, Meaning file, int begin, int end) {
    op(Kind::kPublish, path, begin, end).meaning = file;
  }
  void see(const std::string& path, Meaning file, int begin, int end) {
    op(Kind::kSee, path, begin, end).meaning = file;
  }
  void make_folder(const std::string& path, int begin, int end) { op(Kind::kMakeFolder, path, begin, end); }
  void rename(const std::string& from, const std::string& to, int begin, int end, Code code = Code::kOk) {
    auto& made = op(Kind::kRename, from, begin, end);
    made.to = *paths.find(to);
    made.code = code;
  }
  void remove(const std::string& path, int begin, int end, Code code = Code::kOk) {
    op(Kind::kRemove, path, begin, end).code = code;
  }
  bool are_possible() { return check_names(paths, ops).verdict == Verdict::kLinearizable; }

  Paths paths;
  std::vector<NameOp> ops;
};

}  // namespace

TEST_CASE_METHOD(Names, "what was published is seen, until something else is") {
  publish("/a", 10, 1, 2);
  see("/a", 10, 3, 4);
  publish("/a", 11, 5, 6);
  see("/a", 11, 7, 8);
  CHECK(are_possible());
  see("/a", 10, 9, 10);
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "while a file is being published, both are right, but not the new one and then the old one") {
  publish("/a", 10, 1, 2);
  publish("/a", 11, 3, 20);
  see("/a", 10, 4, 5);
  see("/a", 11, 6, 7);
  CHECK(are_possible());
  see("/a", 10, 8, 9);
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "an operation whose end nobody knows may have happened late, or never") {
  publish("/a", 10, 1, 2);
  remove("/a", 3, 0);
  see("/a", 10, 4, 5);
  CHECK(are_possible());
  see("/a", kNothing, 6, 7);
  CHECK(are_possible());
  see("/a", 10, 8, 9);
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "an operation that was refused changed nothing, and had its reason") {
  publish("/a", 10, 1, 2);
  rename("/b", "/a", 3, 4, Code::kNotFound);
  see("/a", 10, 5, 6);
  CHECK(are_possible());
  remove("/a", 7, 8, Code::kNotFound);
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "a rename moves a file, with nothing left behind") {
  publish("/a", 10, 1, 2);
  publish("/b", 11, 1, 2);
  rename("/a", "/b", 3, 4);
  see("/b", 10, 5, 6);
  CHECK(are_possible());
  see("/a", 10, 7, 8);
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "a rename of a folder moves what is in it") {
  make_folder("/d", 1, 2);
  publish("/d/x", 10, 3, 4);
  rename("/d", "/e", 5, 6);
  see("/e/x", 10, 7, 8);
  see("/d/x", kNothing, 7, 8);
  CHECK(are_possible());
  remove("/e", 9, 10);  // not empty
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "two clients cannot both find a name free") {
  publish("/a", 10, 1, 4);
  publish("/a", 11, 2, 5);
  CHECK(are_possible());
  for (auto& op : ops) op.keep = true;
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "a listing shows one moment") {
  make_folder("/d", 1, 2);
  publish("/d/x", 10, 3, 8);
  const auto bit = Meaning{1} << *paths.find("/d/x");
  op(Kind::kList, "/d", 4, 5).meaning = bit;
  CHECK(are_possible());
  op(Kind::kList, "/d", 6, 7).meaning = 0;
  CHECK(!are_possible());
}

TEST_CASE_METHOD(Names, "what no order explains is named") {
  publish("/a", 10, 1, 2);
  see("/a", 12, 3, 4);
  const auto report = check_names(paths, ops);
  CHECK(report.verdict == Verdict::kNot);
  CHECK_THAT(report.text, Catch::Contains("see /a [c]"));
}

}  // namespace pif::simulate
