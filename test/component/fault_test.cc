// Failing disks: every call may fail, and an error is what comes of it.
#include "component/fixture.h"

namespace pif::component::test {
namespace {

// Fails the n-th call of the disk, counted from 0 when the fault is set.
class NthFault {
 public:
  NthFault(MemoryDisk& disk, std::uint64_t n, Code code) : disk_(disk) {
    disk_.set_fault([this, n, code](std::string_view call, std::string_view) {
      if (call == "clone") return Code::kUnsupported;
      return count_++ == n ? code : Code::kOk;
    });
  }
  ~NthFault() { disk_.set_fault(nullptr); }
  NthFault(const NthFault&) = delete;
  NthFault& operator=(const NthFault&) = delete;
  std::uint64_t calls() const { return count_; }

 private:
  MemoryDisk& disk_;
  std::uint64_t count_ = 0;
};

// Writes in every way: small and large, out of order, gaps, again, cut.
Status write_much(Writer& writer, const Bytes& bytes) {
  PIF_TRY(writer.write_rows(0, 7, {bytes.data(), 100}));
  PIF_TRY(writer.write_rows(7, 2'000, {bytes.data() + 700, 100}));
  PIF_TRY(writer.write_rows(9'000, 1'000, {bytes.data() + 900'000, 100}));
  PIF_TRY(writer.write_rows(2'007, 1'000, {bytes.data() + 200'700, 150}));
  PIF_TRY(writer.write_rows(2'007, 1'000, {bytes.data() + 200'700, 100}));
  PIF_TRY(writer.write_rows(20, 1, {bytes.data() + 2'000, 100}));
  PIF_TRY(writer.write_rows(10'000, 50, {bytes.data(), 100}));
  PIF_TRY(writer.truncate(10'005));
  PIF_TRY(writer.truncate(10'000));
  return writer.write_rows(3'007, 5'993, {bytes.data() + 300'700, 100});
}

}  // namespace

TEST_CASE("faults: whichever call fails, writing says so or the component is right") {
  const Bytes bytes = pattern(1'000'000, 1);
  const Code code = GENERATE(Code::kIo, Code::kNoSpace);
  std::uint64_t failed = 0;
  for (std::uint64_t n = 0;; ++n) {
    CAPTURE(n);
    Fixture fixture(Format::fixed(100));
    const NthFault fault(*fixture.disk, n, code);
    Writer writer = fixture.writer();
    Status status = write_much(writer, bytes);
    auto tail = writer.finish();
    if (fault.calls() <= n) {
      REQUIRE(status.has_value());
      break;
    }
    if (status && tail) FAIL("the failure was swallowed");
    ++failed;
    // What finish() says is whole reads back, whatever failed before it.
    if (tail) {
      fixture.tail = *tail;
      CHECK(fixture.check().empty());
    }
    // Writing all of it again mends it.
    must(writer.truncate(0));
    must(write_much(writer, bytes));
    fixture.tail = must(writer.finish());
    CHECK(fixture.read_all() == bytes);
    CHECK(fixture.check().empty());
  }
  CHECK(failed > 10);
}

TEST_CASE("faults: a failed append of variable rows can be repeated") {
  const std::vector<std::uint32_t> lengths(30'000, 20);
  unsigned failed = 0;
  const Bytes bytes = pattern(600'000, 1);
  for (std::uint64_t n = 0; n < 100; ++n) {
    CAPTURE(n);
    Fixture fixture(Format::variable());
    fixture.fill_variable({7, 0}, pattern(7, 2));
    auto fault = std::make_unique<NthFault>(*fixture.disk, n, Code::kIo);
    Writer writer = fixture.writer();
    if (!writer.append_rows(lengths, bytes)) {
      ++failed;
      CHECK(writer.rows() == 2);
      CHECK_FALSE(writer.finish().has_value());  // neither what was there nor what was to come
      must(writer.append_rows(lengths, bytes));
    }
    auto tail = writer.finish();
    if (!tail) tail = writer.finish();
    fixture.tail = must(std::move(tail));
    const bool all = fault->calls() <= n;
    fault.reset();
    CHECK(fixture.tail.rows == 30'002);
    CHECK(fixture.read_all() == joined(pattern(7, 2), bytes));
    CHECK(fixture.check().empty());
    if (all) {
      CHECK(failed > 2);
      return;
    }
  }
  FAIL("the calls had no end");
}

TEST_CASE("faults: whichever call fails, reading and copying give an error and never wrong bytes") {
  Fixture fixture(Format::lines());
  const Bytes bytes = pattern(90'000, 1);
  fixture.fill_variable(std::vector<std::uint32_t>(3000, 30), bytes);
  const Code code = GENERATE(Code::kIo, Code::kEndOfFile);  // the second: a short read
  for (std::uint64_t n = 0;; ++n) {
    CAPTURE(n);
    Files target =
        must(open_files(*fixture.storage, stem("/lfs", FileId(n + 100)), fixture.shape.format, OpenMode::kCreate));
    const NthFault fault(*fixture.disk, n, code);
    std::vector<std::uint64_t> ends(3001);
    Bytes back(bytes.size());
    const Status read_index = fixture.reader().read_ends(0, 3000, ends);
    const Status read_data = fixture.reader().read_bytes(0, back);
    const auto lines = fixture.reader().check();
    const auto copied = copy_component(fixture.shape, fixture.tail, fixture.files,
                                       Shape::of(FileId(n + 100), fixture.shape.format, 1), target, nullptr, nullptr);
    if (read_data) CHECK(back == bytes);
    const bool clean = lines && lines->empty();
    if (fault.calls() <= n) {
      CHECK((read_index && read_data && clean && copied));
      break;
    }
    // A short read of sums is made good by the next; a failed call is not.
    if (code == Code::kIo) CHECK_FALSE((read_index && read_data && clean && copied));
  }
}

TEST_CASE("faults: a disk that fills up fails the write, and what was finished before stays whole") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(50'050, 1));
  fixture.disk->set_capacity(60'000);
  Writer writer = fixture.writer();
  const Bytes more = pattern(100'000, 2);
  const Status status = writer.write_rows(501, 1'000, {more.data(), 100});
  CHECK(code_of(status) == Code::kNoSpace);
  CHECK(code_of(writer.finish()) == Code::kNoSpace);
  CHECK(fixture.read_all() == pattern(50'050, 1));
  CHECK(fixture.check().empty());
}

TEST_CASE("faults: opening, sharing and removing components hand their errors on") {
  Fixture fixture(Format::lines());
  for (const char* name : {"open", "share", "adopt", "remove", "sync"}) {
    auto handles = must(share(fixture.files));
    fixture.disk->set_fault(
        [&](std::string_view call, std::string_view) { return call == name ? Code::kIo : Code::kOk; });
    const std::string_view call = name;
    if (call == "open")
      CHECK(code_of(open_files(*fixture.storage, fixture.path, fixture.shape.format, OpenMode::kRead)) == Code::kIo);
    if (call == "share") CHECK(code_of(share(fixture.files)) == Code::kIo);
    if (call == "adopt") CHECK(code_of(adopt(*fixture.storage, fixture.shape.format, std::move(handles))) == Code::kIo);
    if (call == "remove") CHECK(code_of(remove_files(*fixture.storage, fixture.path)) == Code::kIo);
    if (call == "sync") CHECK(code_of(sync(fixture.files)) == Code::kIo);
    fixture.disk->set_fault(nullptr);
  }
}

}  // namespace pif::component::test
