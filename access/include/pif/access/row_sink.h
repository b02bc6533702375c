// The one way by which rows get into a component of a file being made: for client, bulk transfers, tools and whoever
// rebuilds. It writes through descriptors, or gathers rows and sends them by message: to their LFS, or, where
// that is absent in the view, to those that keep their parity. Nobody else has a component::Writer on such a component;
// a sort writes stretches (component/stretch.h).
//
// Life: rows are written, in any order (fixed) or one after another (variable); finish() says how the component ends;
// after that nothing more can be written, and the file can be sealed (sealing.h). Thread-safety: none; but write_rows()
// and write_records() with is_direct() may run on several threads, on disjoint pieces of whole chunks. Several sinks
// may share a component in the same way (component::Writer says which finishes last).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pif/access/file_parts.h"
#include "pif/access/requests.h"
#include "pif/access/row_body.h"
#include "pif/access/row_range.h"
#include "pif/component/component.h"

namespace pif::access {

// How a component ends: its LFS gets this when it is sealed.
struct ComponentEnd {
  LfsIndex lfs = 0;
  bool by_descriptor = false;  // its sums are known here; else the LFS has written it, and knows them
  component::Tail tail;        // sums: by descriptor only
  bool scattered = false;      // it was written in pieces (extents.h), and has no sums yet
};

class RowSink {
 public:
  // Through descriptors: `files` are the component's, and go on after `tail`. parts and files outlive it.
  RowSink(const FileParts& parts, LfsIndex lfs, component::Files& files, const component::Tail& tail = {});
  // By message. stage_bytes: gathered before they are sent (one row may be longer). A caller that must bound memory
  // looks at requests.bytes(). small: one message for all, over the connection of other requests. moved: bytes sent are
  // added to it. All outlive it.
  struct ByMessage {
    Requests& requests;
    std::uint64_t& moved;
    std::uint64_t stage_bytes = 0;
    bool small = false;
  };
  // by_message itself is copied; parts outlive the sink and its requests. Where the LFS is absent (copies()), rows are
  // refused as check_keeper() says.
  RowSink(const FileParts& parts, LfsIndex lfs, const ByMessage& by_message);
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;

  // Whether rows go through descriptors; no longer once it is finished. lfs(): which LFS of the file.
  bool is_direct() const { return writer_.has_value(); }
  // The LFS is absent in the view: others keep what is written here, and there is nothing to seal.
  bool copies() const { return by_message_ && parts_.is_absent(lfs_); }
  LfsIndex lfs() const { return lfs_; }
  // Rows written or gathered, and their bytes in .dat.
  std::uint64_t rows() const;
  std::uint64_t bytes() const;

  // Fixed records: rows [first, first + count); the last one last_bytes long (0: whole), which only the file's short
  // last record may be. kInvalid, kCorrupt, kIo: as component::Writer.
  [[nodiscard]] Status write_rows(Row first, std::uint64_t count, component::ConstRows in,
                                  std::uint32_t last_bytes = 0);
  // The same for the records of `rows` that are in `in`: packed, from record `records.begin` on; only the last may be
  // short.
  [[nodiscard]] Status write_records(const RowRange& rows, Range records, std::span<const std::byte> in);

  // Variable records: rows from `first` on, which is the next one of the component. lengths: of the rows; data: their
  // bytes, packed. kInvalid if rows are left out.
  [[nodiscard]] Status append_rows(Row first, std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  // The same for one row, gathered with those before it.
  [[nodiscard]] Status append_row(Row row, std::span<const std::byte> bytes);

  // Writes what is gathered: to the files, or by one more request.
  [[nodiscard]] Status flush();
  // Through descriptors: everything written is in the files, and they end so. Nothing: as at the last show().
  // has_unshown(): whether anything has been written since, or there was none.
  [[nodiscard]] Result<std::optional<component::Tail>> show();
  bool has_unshown() const { return stage_.rows > 0 || changed_.load(std::memory_order_relaxed); }
  // By message, fixed records: packed rows from the first of `rows` on if all of them are still gathered here; empty:
  // they have been sent. Valid until the next call that writes or sends.
  std::span<const std::byte> gathered(const RowRange& rows) const;

  // For who filled the files without this sink (component::copy_component): how that ended.
  void set_end(const component::Tail& tail);
  // Ends writing. By message what was gathered is under way: seal when the requests have run. Again: the same answer.
  // For an absent LFS the result counts the rows; it is not for sealing.
  [[nodiscard]] Result<ComponentEnd> finish();

 private:
  // Rows for an LFS, gathered until they are worth a message or a write.
  struct Stage : RowBody {
    Row first = 0;
    std::uint64_t rows = 0;
  };
  std::uint64_t length() const { return parts_.format.record_length; }
  [[nodiscard]] Status check_open() const;
  [[nodiscard]] Status check_next(Row row) const;
  [[nodiscard]] Status stage_fixed(Row row, std::span<const std::byte> bytes);
  [[nodiscard]] Status stage_variable(std::span<const std::byte> bytes);
  [[nodiscard]] Status send_stage();
  [[nodiscard]] Status send_copies(const Stage& stage, bool in_order);
  void send_rows(Stage stage, bool in_order);

  const FileParts& parts_;
  const LfsIndex lfs_;
  std::optional<component::Writer> writer_;  // through descriptors
  std::optional<ByMessage> by_message_;      // the other way
  Stage stage_;
  std::uint64_t rows_ = 0;            // by message, or variable: written or gathered
  std::uint64_t bytes_ = 0;           // the same
  std::atomic<bool> changed_ = true;  // since the last show(); nothing has been shown at first
  std::optional<ComponentEnd> end_;
};

}  // namespace pif::access
