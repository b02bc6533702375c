// Reads of a disk that does not answer.
#include "../../client/src/session/patient_storage.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "fixture.h"
#include "pif/component/memory_storage.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;
using component::OpenMode;
using component::Piece;

namespace {

// What holds reads up. Reads that are left behind share it, and may end after all else.
struct Gate {
  Code pass(std::string_view call) {
    std::unique_lock lock(mutex);
    if (call == "read_cached") return is_cold ? Code::kIo : Code::kOk;
    if (call != "read") return Code::kOk;
    ++reads;
    changed.wait(lock, [this] { return !is_stuck; });
    return Code::kOk;
  }
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  bool is_cold = false;
  bool is_stuck = false;
  unsigned reads = 0;
};

// A disk that holds reads up, as long as it is told to.
struct Disk {
  explicit Disk(std::span<const std::byte> bytes, Duration patience) : content(bytes.begin(), bytes.end()) {
    patient = client::make_patient(component::make_memory_storage(disk), patience);
    must(memory->make_folder("/d"));
    auto file = must(memory->open("/d/f", OpenMode::kCreate));
    must(file->write(0, bytes));
    adopted = must(patient->adopt(must(file->share())));
    disk->set_fault([gate = gate](std::string_view call, std::string_view) { return gate->pass(call); });
  }
  ~Disk() { release(); }
  void set(bool cold, bool stuck) {
    const std::lock_guard lock(gate->mutex);
    gate->is_cold = cold;
    gate->is_stuck = stuck;
  }
  void release() {
    const std::lock_guard lock(gate->mutex);
    gate->is_stuck = false;
    gate->changed.notify_all();
  }
  unsigned reads_begun() {
    const std::lock_guard lock(gate->mutex);
    return gate->reads;
  }
  void check(std::uint64_t offset, std::size_t size) {
    Bytes out(size);
    CHECK(must(adopted->read(offset, std::span(out))) == std::min(size, content.size() - offset));
    const auto right = part(content, offset, size);
    CHECK(std::equal(right.begin(), right.end(), out.begin()));
  }

  const Bytes content;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> memory = component::make_memory_storage(disk);
  std::unique_ptr<component::Storage> patient;
  std::unique_ptr<component::File> adopted;
};

}  // namespace

TEST_CASE("bytes of a patient file are those of the file, in memory or not") {
  Disk disk(pattern((9u << 20) + 5), 60s);
  for (const bool is_cold : {false, true}) {
    disk.set(is_cold, false);
    disk.check(0, 1);
    disk.check(4095, 70'000);
    disk.check(0, disk.content.size());
    disk.check(3, disk.content.size() + 100);
    Bytes first(3), second(5u << 20), third(2000);
    const std::array<Piece, 4> pieces = {
        {{first.data(), 3}, {nullptr, 0}, {second.data(), second.size()}, {third.data(), third.size()}}};
    CHECK(must(disk.adopted->read(7, pieces)) == 2003 + second.size());
    CHECK(first == Bytes(disk.content.begin() + 7, disk.content.begin() + 10));
    CHECK(second.back() == disk.content[9 + second.size()]);
    CHECK(third.back() == disk.content[9 + second.size() + third.size()]);
  }
}

TEST_CASE("who reads from a disk that does not answer goes on, and its memory is left alone") {
  Disk disk(pattern(10'000), 20ms);
  disk.set(true, true);
  Bytes out(100);
  auto read = disk.adopted->read(50, std::span(out));
  REQUIRE(!read);
  CHECK(read.error().code == Code::kTimeout);
  CHECK(read.error().text.find("has not answered a read at byte 50") != std::string::npos);
  const unsigned begun = disk.reads_begun();
  CHECK(begun == 1);
  for (int i = 0; i < 100; ++i) CHECK(!disk.adopted->read(50, std::span(out)));
  CHECK(disk.reads_begun() == begun);  // they do not wait in turn
  disk.release();
  for (Result<std::size_t> again = fail(Code::kTimeout, ""); !again;) {
    again = disk.adopted->read(50, std::span(out));
    std::this_thread::yield();
  }
  CHECK(out == Bytes(disk.content.begin() + 50, disk.content.begin() + 150));
}

TEST_CASE("a storage ends while a read of it is not answered") {
  auto disk = std::make_unique<Disk>(pattern(10'000), 20ms);
  disk->set(true, true);
  Bytes out(100);
  CHECK(!disk->adopted->read(0, std::span(out)));
  disk->adopted.reset();
  disk->patient.reset();  // returns
  CHECK(disk->reads_begun() == 1);
}
