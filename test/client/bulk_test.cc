// Whole files in and out.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "fixture.h"
#include "pif/client/bulk.h"

using namespace pif;
using namespace pif::test;

namespace {

// A local file that is gone afterwards.
class Local {
 public:
  explicit Local(std::span<const std::byte> bytes = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "pif-bulk-XXXXXX").string();
    fd_ = ::mkstemp(name.data());
    REQUIRE(fd_ >= 0);
    ::unlink(name.c_str());
    REQUIRE(::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  Local(const Local&) = delete;
  ~Local() { ::close(fd_); }
  int fd() const { return fd_; }
  Bytes content() const {
    Bytes out(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)));
    REQUIRE(::pread(fd_, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
    return out;
  }

 private:
  int fd_;
};

// A pipe that is fed, or drained, by a thread of its own.
class Pipe {
 public:
  Pipe() { REQUIRE(::pipe(ends_) == 0); }
  ~Pipe() {
    if (thread_.joinable()) thread_.join();
    close(0);
    close(1);
  }
  int feed(Bytes bytes) {
    thread_ = std::thread([this, all = std::move(bytes)] {
      for (std::size_t at = 0; at < all.size();) {
        const ssize_t n = ::write(ends_[1], all.data() + at, all.size() - at);
        if (n <= 0) break;
        at += static_cast<std::size_t>(n);
      }
      close(1);
    });
    return ends_[0];
  }
  int drain() {
    thread_ = std::thread([this] {
      std::byte buffer[4096];
      for (ssize_t n; (n = ::read(ends_[0], buffer, sizeof buffer)) > 0;)
        drained_.insert(drained_.end(), buffer, buffer + n);
    });
    return ends_[1];
  }
  Bytes drained() {
    close(1);
    thread_.join();
    return drained_;
  }

 private:
  void close(int end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }
  int ends_[2] = {-1, -1};
  std::thread thread_;
  Bytes drained_;
};

// Lines of up to `length_max` bytes, one of them empty; the last without its end.
Bytes lines(std::size_t size, std::size_t length_max) {
  Bytes out = pattern(size, 5);
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == std::byte{'\n'}) out[i] = std::byte{'x'};
    if (i == next) {
      out[i] = std::byte{'\n'};
      next = i + 1 + static_cast<std::size_t>(out[i / 2]) * 31 % length_max;
    }
  }
  if (!out.empty()) out.back() = std::byte{'x'};
  return out;
}

CreateOptions with(Format format, std::uint32_t width = 0, std::uint32_t bevy = 0) {
  CreateOptions options;
  options.format = format;
  options.width = width;
  options.bevy = bevy;
  return options;
}

struct Case {
  CreateOptions options;
  Bytes bytes;
};
std::vector<Case> cases() {
  return {{with(Format::fixed(65536)), pattern(9'000'000)},
          {with(Format::fixed(100)), pattern(3'000'050)},
          {with(Format::fixed(1), 2), pattern(300'000)},
          {with(Format::fixed(5000), 4, 2), pattern(3'000'001)},
          {with(Format::fixed(3'000'000), 3), pattern(10'000'000)},
          {with(Format::fixed(100)), {}},
          {with(Format::lines()), lines(1'000'000, 300)},
          {with(Format::lines(), 4, 2), lines(300'000, 50)},
          {with(Format::lines()), lines(6'000'000, 7000)},
          {with(Format::lines()), {}}};
}

}  // namespace

TEST_CASE("a local file goes in and comes out byte for byte, whatever its format") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      for (const Case& one : cases()) {
        const Local source(one.bytes);
        File file = must(client.create("/f", one.options));
        const BulkCounts in = must(import_stream(file, source.fd()));
        CHECK(in.bytes == one.bytes.size());
        must(file.commit());
        file = must(client.open("/f"));
        CHECK(must(file.file_length()) == FileLength{in.records, in.bytes});
        const Local target;
        const BulkCounts out = must(export_stream(file, target.fd()));
        CHECK(out.bytes == in.bytes);
        CHECK(out.records == in.records);
        CHECK(target.content() == one.bytes);
      }
    });
  }
}

TEST_CASE("several threads move the same bytes as one") {
  FileSystem fs(4);
  fs.threads_max = 4;
  fs.run(DataPath::kDescriptors, [](Client& client) {
    for (const Case& one : cases()) {
      const Local source(one.bytes);
      File file = must(client.create("/f", one.options));
      must(import_stream(file, source.fd()));
      must(file.commit());
      file = must(client.open("/f"));
      const Local target;
      must(export_stream(file, target.fd()));
      CHECK(target.content() == one.bytes);
      Bytes out(one.bytes.size());  // and reads and writes that are large enough to be shared
      CHECK(must(file.pread(out, 0)) == out.size());
      CHECK(out == one.bytes);
      if (!one.options.format.is_fixed()) continue;
      put(client, "/g", one.options, one.bytes);
      CHECK(get(client, "/g") == one.bytes);
    }
  });
}

TEST_CASE("pipes are read and written in order") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      for (const Case& one :
           {Case{with(Format::fixed(1000)), pattern(2'500'500)}, Case{with(Format::lines()), lines(700'000, 90)}}) {
        File file = must(client.create("/f", one.options));
        Pipe source;
        CHECK(must(import_stream(file, source.feed(one.bytes))).bytes == one.bytes.size());
        must(file.commit());
        file = must(client.open("/f"));
        Pipe target;
        CHECK(must(export_stream(file, target.drain())).bytes == one.bytes.size());
        CHECK(target.drained() == one.bytes);
      }
    });
  }
}

TEST_CASE("operations that were started before an export go on during it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      put(client, "/f", with(Format::fixed(1000)), pattern(100'000));
      File file = must(client.open("/f", Client::Mode::kWrite));
      const Bytes fresh = pattern(50'000, 9);
      const auto operation = must(file.start_write(50, fresh));
      Pipe target;
      CHECK(must(export_stream(file, target.drain())).bytes == 100'000);
      CHECK(target.drained().size() == 100'000);
      CHECK(must(file.wait(operation)) == 50);
      const Bytes all = get(client, "/f");
      CHECK(std::equal(fresh.begin(), fresh.end(), all.begin() + 50'000));
    });
  }
}

TEST_CASE("a range of records, and local offsets, are kept to") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      const Bytes bytes = pattern(1'000'000);
      const Local source(bytes);
      File file = must(client.create("/f", with(Format::fixed(100))));
      BulkOptions options;
      options.local_offset = 50;
      CHECK(must(import_stream(file, source.fd(), options)).bytes == 999'950);
      must(file.commit());
      file = must(client.open("/f"));
      const Local target(pattern(10));
      options.local_offset = 10;
      options.records = {9990, 20000};
      const BulkCounts out = must(export_stream(file, target.fd(), options));
      CHECK(out.records == 10);
      CHECK(out.bytes == 950);
      const Bytes content = target.content();
      REQUIRE(content.size() == 10 + 950);
      CHECK(std::equal(content.begin(), content.begin() + 10, pattern(10).begin()));
      CHECK(std::equal(bytes.end() - 950, bytes.end(), content.begin() + 10));
    });
  }
}

namespace {

File bring(Client& client, const CreateOptions& options, const Bytes& bytes) {
  const Local source(bytes);
  File file = must(client.create("/f", options));
  must(import_stream(file, source.fd()));
  must(file.commit());
  return must(client.open("/f"));
}

// The bytes of a range, as they come block by block.
Bytes blocks_of(File& file, const BulkOptions& options = {}) {
  Bytes out;
  must(export_blocks(
      file,
      [&](std::span<const std::byte> block) -> Status {
        out.insert(out.end(), block.begin(), block.end());
        return {};
      },
      options));
  return out;
}

}  // namespace

TEST_CASE("a range of bytes is what it is of the file, wherever it begins and ends in records") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.threads_max = 2;
    fs.run(path, [](Client& client) {
      for (const Case& one :
           {Case{with(Format::fixed(1000)), pattern(2'500'500)}, Case{with(Format::lines()), lines(2'500'500, 90)}}) {
        File file = bring(client, one.options, one.bytes);
        CHECK(blocks_of(file) == one.bytes);
        const std::uint64_t all = one.bytes.size();
        for (const Range range : {Range{0, 1}, Range{0, all}, Range{5, 5}, Range{999, 1001}, Range{123'456, 2'000'001},
                                  Range{all - 1, all}, Range{all - 7, all + 50}, Range{all + 1, all + 2}}) {
          const Range there{std::min(range.begin, all), std::min(range.end, all)};
          const Bytes wanted(one.bytes.begin() + static_cast<std::ptrdiff_t>(there.begin),
                             one.bytes.begin() + static_cast<std::ptrdiff_t>(there.end));
          BulkOptions options;
          options.bytes = range;
          CHECK(blocks_of(file, options) == wanted);
          const Local target;
          CHECK(must(export_stream(file, target.fd(), options)).bytes == wanted.size());
          CHECK(target.content() == wanted);
        }
        BulkOptions options;
        options.bytes = {0, 10};
        options.records = {0, 1};
        CHECK(code_of(export_stream(file, 1, options)) == Code::kInvalid);
      }
    });
  }
}

TEST_CASE("lines that are far longer than most come in their order, too") {
  Bytes bytes(400'000, std::byte{'\n'});
  for (std::size_t i = 0; i < 12; ++i) {
    bytes.insert(bytes.end(), 700'000 + i, std::byte{'a'});
    bytes.push_back(std::byte{'\n'});
  }
  FileSystem fs(3);
  fs.threads_max = 4;
  for (const DataPath path : kBothPaths) {
    fs.run(path, [&](Client& client) {
      for (const std::uint32_t width : {1u, 3u}) {
        File file = bring(client, with(Format::lines(), width), bytes);
        CHECK(blocks_of(file) == bytes);
      }
    });
  }
}

TEST_CASE("the error of whoever takes the blocks ends an export, and the file can be read on") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.threads_max = 4;
    fs.run(path, [](Client& client) {
      for (const Case& one :
           {Case{with(Format::fixed(1000)), pattern(9'000'500)}, Case{with(Format::lines()), lines(9'000'500, 90)}}) {
        File file = bring(client, one.options, one.bytes);
        std::size_t taken = 0;
        const auto ended = export_blocks(file, [&](std::span<const std::byte>) -> Status {
          return ++taken < 2 ? Status() : fail(Code::kNoSpace, "full");
        });
        CHECK(code_of(ended) == Code::kNoSpace);
        CHECK(taken == 2);
        CHECK(blocks_of(file) == one.bytes);
      }
    });
  }
}

TEST_CASE("a transfer stops when asked to, and tells how far it is") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      const Local source(pattern(12'000'000));
      std::atomic<bool> cancel = false;
      BulkOptions options;
      options.cancel = &cancel;
      std::uint64_t last = 0;
      options.progress = [&](const BulkCounts& done, std::uint64_t total) {
        CHECK(total == 12'000'000);
        CHECK(done.bytes >= last);
        last = done.bytes;
        if (done.bytes > 3'000'000) cancel = true;
      };
      File file = must(client.create("/f", with(Format::fixed(4096))));
      CHECK(code_of(import_stream(file, source.fd(), options)) == Code::kCancelled);
      CHECK(last < 12'000'000);
      must(file.abort());
    });
  }
}

TEST_CASE("a line that is too long is named by its place") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    Bytes bytes(kRecordLengthMax + 5000, std::byte{'x'});
    bytes[99] = std::byte{'\n'};
    const Local source(bytes);
    File file = must(client.create("/f", with(Format::lines())));
    const auto counts = import_stream(file, source.fd());
    REQUIRE_FALSE(counts);
    CHECK(counts.error().code == Code::kTooLarge);
    CHECK(counts.error().text.find("byte 100 ") != std::string::npos);
  });
}

TEST_CASE("only a new file takes in a stream, and only one whose records have a length or an end") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    const Local source(pattern(100));
    put(client, "/f", with(Format::fixed(10)), pattern(50));
    File file = must(client.open("/f", Client::Mode::kWrite));
    CHECK(code_of(import_stream(file, source.fd())) == Code::kInvalid);
    file = must(client.create("/v", with(Format::variable())));
    CHECK(code_of(import_stream(file, source.fd())) == Code::kInvalid);
  });
}
