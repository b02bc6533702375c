// Pieces that are copied into a mapping of a component, and faults of such copies.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "../../component/src/pieces/guarded_copy.h"
#include "component/fixture.h"
#include "pif/component/mapped_writes.h"

namespace pif::component::test {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kSkipped = 77;

// A real file, and what a byte loop would have made of it.
struct MappedFile {
  std::unique_ptr<File> open() const { return must(storage->open(folder.path() + "/a", OpenMode::kCreate)); }
  struct stat status() const {
    struct stat info {};
    REQUIRE(::stat((folder.path() + "/a").c_str(), &info) == 0);
    return info;
  }
  void write(const std::vector<ConstExtent>& extents) {
    for (const ConstExtent& extent : extents) {
      model.resize(std::max<std::size_t>(model.size(), extent.offset + extent.size));
      std::copy_n(extent.at, extent.size, model.begin() + static_cast<std::ptrdiff_t>(extent.offset));
    }
    must(write_extents_mapped(*file, extents));
  }
  Bytes contents() const {
    Bytes bytes(must(file->size()));
    CHECK(must(file->read(0, bytes)) == bytes.size());
    return bytes;
  }

  TempFolder folder;
  std::unique_ptr<Storage> storage = make_real_storage();
  std::unique_ptr<File> file = open();
  Bytes model;
};

// `count` pieces of `size` bytes, `apart` bytes from one to the next.
std::vector<ConstExtent> regular(const Bytes& bytes, std::uint64_t from, std::size_t count, std::size_t size,
                                 std::uint64_t apart) {
  std::vector<ConstExtent> extents;
  for (std::size_t i = 0; i < count; ++i) extents.push_back({from + i * apart, size, bytes.data() + i * size});
  return extents;
}

// A mapping of a file that has been cut off since.
class CutMapping {
 public:
  CutMapping() : file_(std::tmpfile()) {
    const int fd = ::fileno(file_);
    REQUIRE(::ftruncate(fd, kPage) == 0);
    at_ = static_cast<std::byte*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    REQUIRE(at_ != MAP_FAILED);
    REQUIRE(::ftruncate(fd, 0) == 0);
  }
  ~CutMapping() {
    ::munmap(at_, kPage);
    std::fclose(file_);
  }
  CutMapping(const CutMapping&) = delete;
  CutMapping& operator=(const CutMapping&) = delete;
  std::span<std::byte> bytes() const { return {at_, kPage}; }

 private:
  std::FILE* file_;
  std::byte* at_ = nullptr;
};

bool copy_to_cut_file() {
  const CutMapping mapping;
  const Bytes bytes(64);
  return copy_guarded(std::vector<ConstExtent>{{100, 64, bytes.data()}}, 0, mapping.bytes());
}

// What a child process that does this ends with: its status as wait() has it.
template <typename Do>
int status_of_child(Do what) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(what());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

// A new process, in which nothing has been guarded yet, that runs a hidden test.
int status_of_test(const char* tag) {
  return status_of_child([tag] {
    ::execl("/proc/self/exe", "component_test", tag, nullptr);
    return 1;
  });
}

// A store that nobody guards.
void fault() {
  const CutMapping mapping;
  *const_cast<volatile std::byte*>(mapping.bytes().data()) = std::byte{1};
}

void without_core() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

TEST_CASE("pieces written through a mapping are where a byte loop puts them, and the file ends with the last") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    MappedFile it;
    for (int call = 0; call < 5; ++call) {
      std::vector<ConstExtent> extents;
      const Bytes bytes = pattern(3 << 20, random());
      std::size_t used = 0;
      std::uint64_t at = random() % 3'000'000;
      for (int stretch = 0; stretch < 6; ++stretch, at += random() % 50'000) {
        const std::size_t size = std::size_t{1} << random() % 12, apart = random() % 300;
        for (std::size_t i = random() % 3000; i > 0 && used + size < bytes.size(); --i, at += size + apart) {
          extents.push_back({at, size, bytes.data() + used});
          used += size;
        }
      }
      it.write(extents);
      CHECK(must(it.file->size()) == it.model.size());
    }
    CHECK(it.contents() == it.model);
  }
}

TEST_CASE("several threads that write interleaved pieces through mappings all get theirs in") {
  MappedFile it;
  const Bytes bytes = pattern(1 << 20, 5);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<ConstExtent> extents;
      for (std::size_t at = i * 64; at < bytes.size(); at += 4 * 64) extents.push_back({at, 64, bytes.data() + at});
      const auto file = it.storage->open(it.folder.path() + "/a", OpenMode::kWrite);
      if (!file || !write_extents_mapped(**file, extents)) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(it.contents() == bytes);
}

TEST_CASE("what lies between pieces takes no room beyond the pages that they are in") {
  MappedFile it;
  const Bytes bytes = pattern(128 * 64, 3);
  std::vector<ConstExtent> extents;
  for (const std::uint64_t from : {1u << 20, (1u << 20) + (100u << 10), 64u << 20}) {  // 4 pages each
    const auto some = regular(bytes, from, 128, 64, 128);
    extents.insert(extents.end(), some.begin(), some.end());
  }
  it.write(extents);
  must(it.file->sync());
  CHECK(static_cast<std::size_t>(it.status().st_blocks) * 512 <= 16 * kPage);
  CHECK(must(it.file->size()) == extents.back().offset + 64);
}

TEST_CASE("a file that is open for reading only is not written through a mapping either") {
  MappedFile it;
  const Bytes bytes = pattern(64 * 64, 3);
  const auto file = must(it.storage->open(it.folder.path() + "/a", OpenMode::kRead));
  CHECK(code_of(write_extents_mapped(*file, regular(bytes, 0, 64, 64, 128))) == Code::kReadOnly);
}

TEST_CASE("a full disk under a mapped write is no-space, and not a fault") {
  const TempFolder folder;
  const int status = status_of_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=128k") != 0)
      return kSkipped;
    const auto storage = make_real_storage();
    const auto file = storage->open(folder.path() + "/a", OpenMode::kCreate);
    const Bytes bytes = pattern(4096 * 64, 3);
    const Status written = write_extents_mapped(**file, regular(bytes, 0, 4096, 64, 128));
    return !written && written.error().code == Code::kNoSpace ? 0 : 1;
  });
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped) WARN("not tested: it takes the right to mount");
  if (WEXITSTATUS(status) != kSkipped) CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a copy into a mapping whose file was cut off fails, time after time, on several threads") {
  REQUIRE(can_guard());
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&failed] {
      sigset_t bus;  // a thread that blocks it is not ended by it
      sigemptyset(&bus);
      sigaddset(&bus, SIGBUS);
      ::pthread_sigmask(SIG_BLOCK, &bus, nullptr);
      for (int round = 0; round < 50; ++round) failed += copy_to_cut_file() ? 0 : 1;
      sigset_t now;
      ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
      if (sigismember(&now, SIGBUS) != 1) failed = -1000;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 4 * 50);
}

TEST_CASE("child: with a handler of its own", "[.][guard-after-handler]") {
  struct sigaction theirs {};
  theirs.sa_handler = [](int) { ::_exit(42); };
  ::sigaction(SIGBUS, &theirs, nullptr);
  if (!can_guard() || copy_to_cut_file()) ::_exit(2);
  fault();
}

TEST_CASE("child: without a handler", "[.][guard-alone]") {
  without_core();
  ::signal(SIGBUS, SIG_DFL);  // sanitizers have a handler
  if (!can_guard() || copy_to_cut_file()) ::_exit(2);
  fault();
}

TEST_CASE("child: without a handler, ended by another process", "[.][guard-sent]") {
  without_core();
  ::signal(SIGBUS, SIG_DFL);  // sanitizers have a handler
  if (!can_guard() || copy_to_cut_file()) ::_exit(2);
  ::kill(::getpid(), SIGBUS);
}

TEST_CASE("a fault that is not a copy's goes to the handler that was there before") {
  const int status = status_of_test("[guard-after-handler]");
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("a fault that is nobody's ends the process, and so does a bus error that another one sends") {
  for (const char* tag : {"[guard-alone]", "[guard-sent]"}) {
    const int status = status_of_test(tag);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGBUS);
  }
}

TEST_CASE("nothing is mapped while a handler of the program stands in the guard's place") {
  const int status = status_of_child([] {
    if (!can_guard()) return 1;
    ::signal(SIGBUS, [](int) { ::_exit(42); });
    return can_guard() ? 2 : 0;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace pif::component::test
