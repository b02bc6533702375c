// Streams that are compressed and decompressed at the other end of a pipe.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include <catch2/catch.hpp>

#include "../../tools/pif/codec/codec_pipe.h"
#include "pif/base/handle.h"
#include "pif/base/write_all.h"

namespace pif::cli {
namespace {

constexpr Compression kKinds[] = {Compression::kGzip, Compression::kZstd, Compression::kXz};

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::mt19937& rng, std::size_t size, unsigned letters) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = std::byte(rng() % letters);
  return bytes;
}

UniqueFd memory_file() { return UniqueFd(::memfd_create("codec_pipe_test", MFD_CLOEXEC)); }

Bytes content(int fd) {
  Bytes bytes(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
  REQUIRE(::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

Bytes compressed(Compression kind, std::span<const std::byte> bytes) {
  const UniqueFd to = memory_file();
  auto pipe = CodecPipe::compress(to.get(), kind, "there");
  REQUIRE(pipe);
  REQUIRE(write_all(pipe->fd(), bytes, "cannot write"));
  REQUIRE(pipe->finish());
  REQUIRE(pipe->finish());
  return content(to.get());
}

struct Read {
  Bytes bytes;
  Status end;
};

// At most `limit` bytes of what is in it, so many at once.
Read decompressed(Compression kind, std::span<const std::byte> bytes, std::size_t at_once, std::size_t limit) {
  const UniqueFd from = memory_file();
  REQUIRE(write_all(from.get(), bytes, "cannot write"));
  ::lseek(from.get(), 0, SEEK_SET);
  auto pipe = CodecPipe::decompress(from.get(), kind, "there");
  REQUIRE(pipe);
  Read read;
  Bytes buffer(at_once);
  for (ssize_t got = 1; got > 0 && read.bytes.size() < limit;) {
    got = ::read(pipe->fd(), buffer.data(), buffer.size());
    REQUIRE(got >= 0);
    read.bytes.insert(read.bytes.end(), buffer.begin(), buffer.begin() + got);
  }
  read.end = pipe->finish();
  return read;
}

TEST_CASE("codec pipe: streams of all sizes come back, also several one behind another") {
  std::mt19937 rng(1);
  for (const Compression kind : kKinds) {
    for (const std::size_t size : {0u, 1u, 1000u, 262'144u, 1'500'000u}) {
      const Bytes data = random_bytes(rng, size, 256), other = random_bytes(rng, 3000, 3);
      Bytes stream = compressed(kind, data);
      const Bytes second = compressed(kind, other);
      stream.insert(stream.end(), second.begin(), second.end());
      const Read read = decompressed(kind, stream, 1 + rng() % 100'000, SIZE_MAX);
      Bytes all = data;
      all.insert(all.end(), other.begin(), other.end());
      CHECK(read.end);
      CHECK(read.bytes == all);
    }
  }
}

TEST_CASE("codec pipe: what is very small becomes very large, in bounded memory") {
  for (const Compression kind : kKinds) {
    const Bytes zeros(30'000'000);
    const Bytes stream = compressed(kind, zeros);
    CHECK(stream.size() < 100'000);
    CHECK(decompressed(kind, stream, 1u << 20, SIZE_MAX).bytes == zeros);
  }
}

TEST_CASE("codec pipe: a stream that is cut off anywhere is an error that names it") {
  std::mt19937 rng(2);
  for (const Compression kind : kKinds) {
    const Bytes stream = compressed(kind, random_bytes(rng, 2000, 7));
    for (std::size_t size = 0; size < stream.size(); size += 1 + size / 8) {
      const Read read = decompressed(kind, std::span(stream).first(size), 4096, SIZE_MAX);
      REQUIRE(!read.end);
      CHECK(read.end.error().code == Code::kCorrupt);
      CHECK(read.end.error().text == "there is cut off: its compressed data end too early");
    }
  }
}

TEST_CASE("codec pipe: who has read enough may end") {
  std::mt19937 rng(3);
  for (const Compression kind : kKinds) {
    const Bytes data = random_bytes(rng, 8'000'000, 256);
    const Read read = decompressed(kind, compressed(kind, data), 1000, 1);
    CHECK(read.end);
    CHECK(std::equal(read.bytes.begin(), read.bytes.end(), data.begin()));
  }
}

TEST_CASE("codec pipe: what cannot be written is taken, and said in the end") {
  std::mt19937 rng(4);
  for (const Compression kind : kKinds) {
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    auto pipe = CodecPipe::compress(full.get(), kind, "there");
    REQUIRE(pipe);
    REQUIRE(write_all(pipe->fd(), random_bytes(rng, 9'000'000, 256), "cannot write"));
    const Status end = pipe->finish();
    REQUIRE(!end);
    CHECK(end.error().code == Code::kNoSpace);
    CHECK(end.error().text.starts_with("cannot write to there"));
  }
}

TEST_CASE("codec pipe: what was not finished has no end") {
  std::mt19937 rng(5);
  for (const Compression kind : kKinds) {
    const UniqueFd to = memory_file();
    {
      auto pipe = CodecPipe::compress(to.get(), kind, "there");
      REQUIRE(pipe);
      REQUIRE(write_all(pipe->fd(), random_bytes(rng, 5000, 256), "cannot write"));
    }
    CHECK(!decompressed(kind, content(to.get()), 4096, SIZE_MAX).end);
  }
}

TEST_CASE("codec pipe: names say what is compressed") {
  CHECK(compression_of_name("a.gz") == Compression::kGzip);
  CHECK(compression_of_name("a.gz.zst") == Compression::kZstd);
  CHECK(compression_of_name("gz") == Compression::kNone);
  CHECK(without_suffix("/x/a.xz", Compression::kXz) == "/x/a");
  CHECK(without_suffix("/x/.xz", Compression::kXz) == "/x/.xz");
  CHECK(without_suffix("a.gz", Compression::kXz) == "a.gz");
  CHECK(without_suffix("a.gz", Compression::kNone) == "a.gz");
}

}  // namespace
}  // namespace pif::cli
