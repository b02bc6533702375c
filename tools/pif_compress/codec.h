// Records into stored records and back, by zstd. One thread for each Encoder and Decoder; a Dictionary is shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <zstd.h>

#include "pif/base/ids.h"
#include "pif/base/result.h"

namespace pif::compress {

inline constexpr std::size_t kCheckBytes = 2;  // in front of a stored record

// The start of each frame, in both directions. Made once, before there are threads; const calls from any.
class Dictionary {
 public:
  // Empty bytes: none. kCorrupt: they are no dictionary. level: for an Encoder; nothing: for a Decoder.
  [[nodiscard]] static Result<Dictionary> make(const std::string& bytes, std::optional<int> level);
  const ZSTD_CDict* encoding() const { return encoding_.get(); }
  const ZSTD_DDict* decoding() const { return decoding_.get(); }

 private:
  template <auto F>
  struct Free {
    void operator()(auto* p) const { F(p); }
  };
  std::unique_ptr<ZSTD_CDict, Free<ZSTD_freeCDict>> encoding_;
  std::unique_ptr<ZSTD_DDict, Free<ZSTD_freeDDict>> decoding_;
};

class Encoder {
 public:
  // The dictionary outlives it.
  Encoder(const Dictionary& dictionary, int level);

  // Adds the stored record behind `out`. kUnsupported: with what zstd adds it is longer than a record may be.
  [[nodiscard]] Status add(std::span<const std::byte> record, std::vector<std::byte>& out);
  // Before the next chain: the bytes of all its records together.
  void begin_chain(std::uint64_t bytes);
  // The chain's next record. is_last: no other one follows it.
  [[nodiscard]] Status add_to_chain(std::span<const std::byte> record, bool is_last, std::vector<std::byte>& out);

 private:
  [[nodiscard]] Status keep(std::span<const std::byte> record, std::size_t begin, std::vector<std::byte>& out) const;

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<std::byte> frame_;
  std::uint8_t place_ = 0;        // of the chain's next record
  bool has_begun_frame_ = false;  // the chain's; empty records do not begin it
};

class Decoder {
 public:
  explicit Decoder(const Dictionary& dictionary);  // outlives it

  // Adds the record behind `out`. kCorrupt: it is damaged; the text begins with "is damaged", for a caller that knows
  // the number.
  [[nodiscard]] Status add(std::span<const std::byte> stored, std::vector<std::byte>& out);
  // The same in a chain; `row` is the record's in its original component. kCorrupt also if it does not follow the
  // record before.
  [[nodiscard]] Status add_of_chain(std::span<const std::byte> stored, Row row, std::vector<std::byte>& out);
  // Bytes of the record in a stored one that is in no chain, as its frame says; what cannot be has any number.
  static std::uint64_t size_of(std::span<const std::byte> stored);

 private:
  [[nodiscard]] Status read_frames(std::span<const std::byte> frame, std::vector<std::byte>& out);

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  const Dictionary& dictionary_;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  std::vector<std::byte> frame_;
  std::optional<Row> next_row_;  // that may follow in the chain; nothing: only a head
  std::uint32_t next_place_ = 0;
  bool has_begun_frame_ = false;
};

}  // namespace pif::compress
