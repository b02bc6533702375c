// The oracle finds each lie that a file system could tell, and takes the truth for it.
#include <catch2/catch.hpp>

#include "simulate/oracle.h"

namespace pif::simulate {
namespace {

constexpr std::uint64_t kFile = 7;

Time at(int t) { return Time(std::chrono::seconds(t)); }
Span during(int begin, int end) { return {at(begin), at(end)}; }

std::vector<std::byte> record(std::uint64_t write, std::uint32_t index) {
  std::vector<std::byte> out(100);
  fill_record({write, index}, out);
  return out;
}

// A file of four records, put at time 1 and committed.
struct Told : Oracle {
  Told() {
    created(kFile);
    put = begin_put(kFile, 0, 4, at(1));
    begin_commit(kFile, 4);
  }
  void sees(std::uint64_t number, std::uint64_t write, std::uint32_t index, int begin, int end) {
    saw_record(kFile, number, record(write, index), during(begin, end));
  }
  std::uint64_t overwritten(std::uint64_t first, std::uint32_t count, int begin, int end) {
    const auto write = begin_overwrite(kFile, first, count, at(begin));
    if (end != 0) acknowledged(write, at(end));
    return write;
  }
  bool accuses() const { return !violations().empty(); }
  std::uint64_t put = 0;
};

}  // namespace

TEST_CASE_METHOD(Told, "oracle: what was put may be read, each record at its place") {
  sees(2, put, 2, 3, 4);
  CHECK(!accuses());
  sees(1, put, 2, 5, 6);
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: one wrong byte, or one write's beginning with another's end, is found") {
  auto bytes = record(put, 0);
  SECTION("a flipped bit") { bytes[60] ^= std::byte{1}; }
  SECTION("half of another") {
    const auto other = record(overwritten(0, 1, 2, 3), 0);
    std::copy(other.begin(), other.begin() + 50, bytes.begin());
  }
  SECTION("zeros") { bytes.assign(100, std::byte{0}); }
  saw_record(kFile, 0, bytes, during(4, 5));
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: an acknowledged overwrite may not be forgotten") {
  const auto write = overwritten(1, 2, 2, 3);
  sees(2, write, 1, 4, 5);
  sees(0, put, 0, 4, 5);
  CHECK(!accuses());
  sees(1, put, 1, 4, 5);
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: of overwrites at once any may win; of one after the other the second") {
  const auto first = overwritten(0, 1, 2, 6);
  const auto at_once = overwritten(0, 1, 3, 5);
  sees(0, first, 0, 7, 8);
  CHECK(!accuses());
  const auto later = overwritten(0, 1, 9, 10);
  sees(0, later, 0, 11, 12);
  CHECK(!accuses());
  sees(0, at_once, 0, 11, 12);
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: a failed overwrite may be there or not, but what was seen stays") {
  const auto failed = overwritten(0, 1, 2, 0);
  sees(0, put, 0, 3, 4);
  sees(0, failed, 0, 5, 6);
  CHECK(!accuses());
  sees(0, put, 0, 7, 8);
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: an acknowledged append may not be missing") {
  const auto write = begin_append(kFile, 3, at(2));
  appended(write, 4, at(3));
  saw_length(kFile, 7, during(4, 5));
  CHECK(!accuses());
  saw_length(kFile, 4, during(4, 5));
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: two appends cannot be at the same place") {
  appended(begin_append(kFile, 3, at(2)), 4, at(3));
  appended(begin_append(kFile, 3, at(2)), 7, at(3));
  CHECK(!accuses());
  appended(begin_append(kFile, 3, at(2)), 9, at(3));
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: an append is not seen twice, nor half") {
  const auto write = begin_append(kFile, 3, at(2));
  SECTION("twice") {
    sees(4, write, 0, 3, 4);
    CHECK(!accuses());
    sees(7, write, 0, 3, 4);
  }
  SECTION("half") {
    saw_length(kFile, 5, during(3, 4));
    appended(write, 4, at(5));
    check_at_the_end(Paths());
  }
  CHECK(accuses());
}

TEST_CASE_METHOD(Told,
                 "oracle: of an append that was undone unseen, rows may be left where the next one was lost as well") {
  const auto undone = begin_append(kFile, 4, at(2));
  appended(undone, 4, at(3));
  SECTION("undone") {
    lapse(during(2, 4));  // where its first row is
    lapse(during(4, 6));  // where its second is, and where the second of the next one was
    sees(5, undone, 1, 8, 9);
    saw_length(kFile, 7, during(8, 9));
    check_at_the_end(Paths{});
    CHECK(!accuses());
  }
  SECTION("not undone") {
    lapse(during(5, 6));
    saw_length(kFile, 7, during(8, 9));
    check_at_the_end(Paths{});
    CHECK(accuses());
  }
}

TEST_CASE_METHOD(Told, "oracle: a length neither goes back nor passes what was written") {
  begin_append(kFile, 3, at(2));
  saw_length(kFile, 7, during(3, 4));
  CHECK(!accuses());
  SECTION("back") { saw_length(kFile, 4, during(5, 6)); }
  SECTION("past") { saw_length(kFile, 8, during(5, 6)); }
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: a copy holds what its source held at some moment of copying") {
  const auto before = overwritten(0, 1, 2, 3);
  NameOp op;
  op.begin = at(5);
  const auto copy = begin_copy("/copy", op);
  copies_into(copy, kFile, 8);
  copied(copy, Code::kOk, at(6));
  const auto after = overwritten(0, 1, 7, 8);
  SECTION("as it was") {
    saw_record(8, 0, record(before, 0), during(9, 10));
    CHECK(!accuses());
    saw_record(8, 0, record(put, 0), during(9, 10));
  }
  SECTION("older") { saw_record(8, 0, record(put, 0), during(9, 10)); }
  SECTION("newer") { saw_record(8, 0, record(after, 0), during(9, 10)); }
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "oracle: what is refused after the directory was put back may have been done before") {
  Paths paths;
  NameOp publish;
  publish.paths = &paths;
  publish.kind = NameOp::Kind::kPublish;
  publish.path = paths.add("/a");
  publish.meaning = 9;
  publish.begin = at(2);
  publish.end = at(6);
  publish.code = Code::kStaleFile;
  NameOp see = publish;
  see.kind = NameOp::Kind::kSee;
  see.begin = at(3);
  see.end = at(4);
  see.code = Code::kOk;
  note(publish);
  note(see);
  SECTION("put back") {
    forget_names(during(1, 5), false);
    check_at_the_end(paths);
    CHECK(!accuses());
  }
  SECTION("not put back") {
    check_at_the_end(paths);
    CHECK(accuses());
  }
}

TEST_CASE_METHOD(Told, "oracle: a file that nobody made, and a record of another file, are found") {
  SECTION("file") { saw_file("/a", 99); }
  SECTION("record") {
    created(8);
    saw_record(8, 0, record(put, 0), during(3, 4));
  }
  CHECK(accuses());
}

}  // namespace pif::simulate
