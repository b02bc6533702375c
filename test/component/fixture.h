// What the tests of component/ share: storages, bytes with a pattern, and a component to write and read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include "pif/component/component.h"
#include "pif/component/memory_storage.h"
#include "pif/component/real_storage.h"

namespace pif::component::test {

using Bytes = std::vector<std::byte>;

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/pif-component-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { (void)make_real_storage()->remove_tree(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// No two calls with one seed give different bytes; none are zero, so that a gap shows.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed * 2654435761u + 1);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 255 + 1);
  return bytes;
}

// In one piece of memory made for both: GCC 12 takes an insert() at the end of a short vector for an overrun.
inline Bytes joined(const Bytes& a, const Bytes& b) {
  Bytes both(a.size() + b.size());
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), both.begin()));
  return both;
}

inline const char* raw(const Bytes& bytes) { return reinterpret_cast<const char*>(bytes.data()); }
inline std::string text(const Bytes& bytes) { return {raw(bytes), bytes.size()}; }

template <typename T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text);
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text);
}
inline Code code_of(const Status& status) { return status ? Code::kOk : status.error().code; }
template <typename T>
Code code_of(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}

// One component on a disk in memory.
struct Fixture {
  explicit Fixture(const Format& format, FileId file = FileId(12), std::uint32_t form = 0)
      : shape(Shape::of(file, format, form)) {
    reopen();
  }

  void reopen() { files = must(open_files(*storage, path, shape.format, OpenMode::kCreate)); }
  Writer writer() { return Writer(shape, tail, files); }
  Reader reader() { return Reader(shape, tail, files); }
  // Packed rows from row 0 on, as a finished component.
  void fill(const Bytes& bytes) {
    const std::uint32_t length = shape.format.record_length;
    Writer out = writer();
    const std::uint64_t rows = (bytes.size() + length - 1) / length;
    must(out.write_rows(0, rows, {bytes.data(), length}, static_cast<std::uint32_t>(bytes.size() % length)));
    tail = must(out.finish());
  }
  void fill_variable(const std::vector<std::uint32_t>& lengths, const Bytes& bytes) {
    Writer out = writer();
    must(out.append_rows(lengths, bytes));
    tail = must(out.finish());
  }
  Bytes read_all() {
    Bytes bytes(tail.bytes);
    must(reader().read_bytes(0, bytes));
    return bytes;
  }
  std::vector<std::string> check() { return must(reader().check()); }

  std::shared_ptr<MemoryDisk> disk = MemoryDisk::make();
  std::unique_ptr<Storage> storage = make_memory_storage(disk);
  Shape shape;
  std::string path = stem("/lfs", shape.file);
  Tail tail;
  Files files;
};

}  // namespace pif::component::test
