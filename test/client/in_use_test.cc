// An assertion that breaks inside a call of a client.
#include <sys/mman.h>
#include <unistd.h>

#include "../../client/src/file/file_state.h"
#include "fixture.h"
#include "pif/base/assert.h"
#include "pif/client/bulk.h"

using namespace pif;
using namespace pif::test;

namespace {

// The library's handler: the world's is not there meanwhile.
class HandlerOfLibrary {
 public:
  HandlerOfLibrary() : before_(set_assertion_handler(nullptr)) {}
  ~HandlerOfLibrary() { set_assertion_handler(before_); }
  HandlerOfLibrary(const HandlerOfLibrary&) = delete;
  HandlerOfLibrary& operator=(const HandlerOfLibrary&) = delete;

 private:
  AssertionHandler before_;
};

void put_records(Client& client) {
  CreateOptions options;
  options.format = Format::fixed(10);
  put(client, "/f", options, pattern(50));
}

// Writes to a file that takes itself for one being created.
Status break_inside(File& file) {
  file.state().phase = client::FileState::Phase::kCreating;
  return file.write(pattern(10));
}

std::uint64_t requests_of(const Client& client) {
  std::uint64_t count = 0;
  for (const OperationStats& operation : client.stats()) count += operation.count;
  return count;
}

// What a result says about a client in which an assertion broke with this text.
class Broken {
 public:
  explicit Broken(std::string text) : text_(std::move(text)) {}
  template <typename T>
  bool is(const Result<T>& result) const {
    return !result && result.error().code == Code::kInternal && result.error().text == text_;
  }
  template <typename T>
  bool are(const std::vector<Result<T>>& results) const {
    return results.size() == 1 && is(results.front());
  }

 private:
  std::string text_;
};

void check_names(Client& client, const Broken& broken) {
  const std::vector<std::string> paths = {"/f"};
  const std::vector<Client::NewFile> files = {{"/g", {}}};
  const std::vector<Client::NewFolder> folders = {{"/d"}};
  CHECK(broken.is(client.create("/g")));
  CHECK(broken.is(client.open("/f")));
  CHECK(broken.are(client.create_many(files)));
  CHECK(broken.are(client.open_small_many(paths)));
  CHECK(broken.is(client.create_empty("/g")));
  CHECK(broken.is(client.create_empty_many(paths)));
  CHECK(broken.is(client.make_folder("/d")));
  CHECK(broken.are(client.make_folder_many(folders)));
  CHECK(broken.is(client.change_attributes("/f", {})));
  CHECK(broken.is(client.stat("/f")));
  CHECK(broken.is(client.stat_many(paths)));
  CHECK(broken.is(client.list("/")));
  CHECK(broken.is(client.remove("/f")));
  CHECK(broken.is(client.remove_many(paths)));
  CHECK(broken.is(client.rename("/f", "/g")));
  CHECK(broken.is(client.status()));
  CHECK(broken.is(client.daemon_stats()));
}

void check_file(Client& client, File& file, const Broken& broken) {
  Bytes bytes(10);
  const std::vector<std::uint32_t> lengths = {10};
  File* const files[] = {&file};
  CHECK(broken.is(file.file_length()));
  CHECK(broken.is(file.seek(0)));
  CHECK(broken.is(file.read(bytes, 1)));
  CHECK(broken.is(file.read_at(0, bytes, 1)));
  CHECK(broken.is(file.write(bytes)));
  CHECK(broken.is(file.write_at(0, bytes)));
  CHECK(broken.is(file.read_batch(1)));
  CHECK(broken.is(file.read_batch_at(0, 1)));
  CHECK(broken.is(file.write_batch(lengths, bytes)));
  CHECK(broken.is(file.write_batch_at(0, lengths, bytes)));
  CHECK(broken.is(file.read_many({})));
  CHECK(broken.is(file.start_read(0, bytes, 1)));
  CHECK(broken.is(file.start_write(0, bytes)));
  CHECK(broken.is(file.wait(1)));
  CHECK(file.is_done(1));
  CHECK(broken.is(file.append(bytes)));
  CHECK(broken.is(file.append_bytes(bytes)));
  CHECK(broken.is(file.append_batch(lengths, bytes)));
  CHECK(broken.is(file.pread(bytes, 0)));
  CHECK(broken.is(file.pwrite(bytes, 0)));
  CHECK(broken.is(import_stream(file, -1)));
  CHECK(broken.is(export_stream(file, -1)));
  CHECK(broken.are(client.commit_many(files)));
  CHECK(broken.are(client.read_many(files)));
  CHECK(broken.is(client.close_many(files)));
  CHECK(broken.is(file.commit()));
  CHECK(broken.is(file.abort()));
  CHECK(broken.is(file.close()));
}

}  // namespace

TEST_CASE("an assertion that breaks inside a call is kInternal, as is every other call of that client and its files") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    const HandlerOfLibrary handler;
    fs.run(path, [](Client& client) {
      put_records(client);
      File file = must(client.open("/f"));
      File other = must(client.open("/f", Client::Mode::kWrite));
      File fresh = must(client.create("/g"));
      const Status broken = break_inside(file);
      REQUIRE(code_of(broken) == Code::kInternal);
      const std::string& text = broken.error().text;
      CHECK(text.find("access/src/component_access.cc:") != std::string::npos);
      CHECK(text.find(": assertion failed: parts_.creating") != std::string::npos);
      const std::uint64_t requests = requests_of(client);
      check_names(client, Broken(text));
      for (File* one : {&file, &other, &fresh}) check_file(client, *one, Broken(text));
      { const File dropped = std::move(fresh); }
      CHECK(requests_of(client) == requests);
    });
  }
}

TEST_CASE("an assertion that breaks in one client leaves others of the process as they are") {
  FileSystem fs(2);
  const HandlerOfLibrary handler;
  bool is_broken = false;
  fs.add_client("broken", DataPath::kAuto, [&](Client& client, sim::Actor&) {
    put_records(client);
    File file = must(client.open("/f"));
    is_broken = code_of(break_inside(file)) == Code::kInternal;
  });
  bool goes_on = false;
  fs.add_client("other", DataPath::kAuto, [&](Client& client, sim::Actor& self) {
    while (!is_broken) REQUIRE(self.pause(std::chrono::milliseconds(10)));
    goes_on = get(client, "/f") == pattern(50);
  });
  fs.world.run();
  CHECK(goes_on);
}

TEST_CASE("an assertion that breaks on the caller's thread of a transfer by several threads is kInternal") {
  FileSystem fs(2);
  fs.threads_max = 4;
  const HandlerOfLibrary handler;
  const Bytes bytes = pattern(12'000'000);
  const int source = ::memfd_create("source", 0);
  REQUIRE(source >= 0);
  REQUIRE(::pwrite(source, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  fs.run(DataPath::kDescriptors, [&](Client& client) {
    File file = must(client.create("/f"));
    BulkOptions options;
    options.progress = [](const BulkCounts&, std::uint64_t) { PIF_ASSERT(1 + 1 == 3); };
    const auto counts = import_stream(file, source, options);
    REQUIRE(code_of(counts) == Code::kInternal);
    CHECK(counts.error().text.find("in_use_test.cc:") != std::string::npos);
    CHECK(code_of(file.commit()) == Code::kInternal);
  });
  ::close(source);
}
