// Writes log/redo.log as releases before format 4 did: two heads of 4 KiB, then entries; nothing ends a batch.
#pragma once

#include <string>

#include <catch2/catch.hpp>

#include "../../lfs/src/redo/redo_entries.h"

namespace pif::lfs::test {

class OlderLog {
 public:
  static constexpr std::uint64_t kHeadBytes = 4096, kFirstEntry = 8192;

  OlderLog(component::Storage& storage, std::string path) : storage_(storage), path_(std::move(path)) {
    REQUIRE(storage.open(path_, component::OpenMode::kCreate).value()->resize(kFirstEntry).has_value());
  }

  void head(std::uint64_t round, std::uint64_t number) {
    const auto stored = redo::make_head(1, round, number);
    put(round % 2 * kHeadBytes, std::as_bytes(std::span(&stored, 1)));
    chain_ = stored.hash;
    end_ = kFirstEntry;
  }
  void entry(const LogEntry& entry, std::uint64_t number) {
    const auto stored = redo::make_entry(entry, number, chain_);
    put(end_, std::as_bytes(std::span(&stored, 1)));
    put(end_ + sizeof stored, entry.data);
    end_ += sizeof stored + entry.data.size() + redo::padding(entry.data.size());
    chain_ = stored.hash;
  }
  void entry(std::uint64_t number, const std::string& data) {
    entry({FileId(7), number, 4096, std::as_bytes(std::span(data))}, number);
  }
  std::uint64_t end() const { return end_; }

 private:
  void put(std::uint64_t at, std::span<const std::byte> bytes) {
    const auto file = storage_.open(path_, component::OpenMode::kWrite).value();
    REQUIRE(file->write(at, bytes).has_value());
    REQUIRE(file->sync().has_value());
    REQUIRE(storage_.sync_folder(path_.substr(0, path_.rfind('/'))).has_value());
  }

  component::Storage& storage_;
  const std::string path_;
  std::uint64_t chain_ = 0, end_ = 0;
};

}  // namespace pif::lfs::test
