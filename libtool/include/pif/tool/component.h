// A worker's share of a tool's files: the components on its own LFS, read and written through descriptors that the LFS
// passed, at local-file speed, every byte read checked.
//
// Not thread-safe: one thread per Input or Output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pif/access/component_access.h"
#include "pif/access/grant.h"
#include "pif/access/row_sink.h"
#include "pif/base/assert.h"
#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/client/session.h"
#include "pif/component/component.h"
#include "pif/parity/layout.h"
#include "pif/tool/scratch.h"

namespace pif::tool {

class Trace;

inline constexpr std::size_t kBatchBytes = 1u << 20;  // of rows in one batch, unless one row is longer

// Consecutive rows of one component, in memory.
// Fixed records: `data` holds count rows of record_length bytes; only the file's last record may be shorter, and then
// data.size() < count * record_length. Variable records: lengths[i] bytes per row, packed; record_length is 0.
struct RowBatch {
  Row first = 0;
  std::uint64_t count = 0;
  std::uint32_t record_length = 0;
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;

  // f(std::span<std::byte> record) for every record, in order. The records are those in `data`: f may change their
  // bytes.
  template <typename F>
  void for_each(F&& f) {
    PIF_ASSERT(record_length > 0 || lengths.size() == count, lengths.size(), count);
    std::span<std::byte> rest(data);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t length = record_length > 0 ? std::min<std::size_t>(record_length, rest.size()) : lengths[i];
      f(rest.first(length));
      rest = rest.subspan(length);
    }
  }
};

// The members that all components have in common.
class Component {
 public:
  // The whole file, as the controller opened or created it; valid as long as this object.
  const access::FileParts& file() const { return grant_.parts(); }
  const Format& format() const { return file().format; }
  const parity::Layout& layout() const { return file().layout; }
  // Whether the worker's LFS is one of the file's. Everything below needs that.
  bool is_here() const { return index_.has_value(); }
  // Which LFS of the file.
  LfsIndex index() const {
    PIF_ASSERT(is_here());
    return *index_;
  }
  component::Shape shape() const { return file().stored_shape(); }
  // The reader of the component that is here; open once the worker has attached it, until the worker's end.
  component::Files& files() {
    PIF_ASSERT(is_here());
    return access_->files();
  }

 protected:
  friend class Worker;
  friend class Team;
  // storage outlives it. index: which LFS of the file the worker's is.
  Component(component::Storage& storage, access::FileParts parts, std::optional<LfsIndex> index);

  access::Grant grant_;  // the controller's, who renews it
  std::optional<LfsIndex> index_;
  std::unique_ptr<access::ComponentAccess> access_;  // if it is here
  Trace* trace_ = nullptr;                           // the worker's; null: nobody asked for one
};

// A component of an input. Nobody may write to the file while the tool holds it.
class Input : public Component {
 public:
  // The rows of the file in this component: all of them are there, else the worker does not get an Input. bytes(): of
  // .dat. 0 and 0 where no rows are.
  const FileLength& file_length() const { return file().file_length; }  // of the whole file
  std::uint64_t rows() const { return rows_; }                          // of this component, as the file's length gives
  std::uint64_t bytes() const { return bytes_; }
  // The content of the component. More than rows() and bytes() if somebody died appending; is_exact() otherwise.
  const component::Tail& tail() const { return tail_; }
  bool is_exact() const { return tail_.rows == rows_ && tail_.bytes == bytes_; }
  // Checked reads anywhere in the component. Only if it has rows here; valid as long as this object.
  const component::Reader& reader() const {
    PIF_ASSERT(is_here());
    return access_->reader();
  }

  // The next rows, from the front, up to kBatchBytes of them; false at the end. The batch is replaced.
  // Errors: as component::Reader.
  [[nodiscard]] Result<bool> next(RowBatch& batch);
  // next() gives from now on: the rows of this range that there are, again where it was read before; all of them.
  void go_over(Range rows) { next_ = rows.begin, end_ = rows.end; }
  void rewind() { go_over({0, UINT64_MAX}); }
  // Rows from `first` on: at most `count`, at most `bytes` bytes of them, but at least one; none at the end.
  [[nodiscard]] Status read(Row first, std::uint64_t count, std::size_t bytes, RowBatch& batch) const;

  // The bytes of the component's rows where they are, in the page cache, unchecked. kUnsupported where they cannot be
  // mapped (a simulation).
  [[nodiscard]] Result<Scratch> map();
  // Reads bytes [offset, offset + size) of them into memory, and checks them there. This says what is wrong, where the
  // worker would end that touched them.
  [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t size, const Scratch& mapped) const;

  // Records so far, for the tool's report: by next() and read(), and as count_read() gets.
  std::uint64_t bytes_read() const { return bytes_read_; }
  // For who read files() without this object.
  void count_read(std::uint64_t bytes) { bytes_read_ += bytes; }

 private:
  friend class Worker;
  friend class Team;
  using Component::Component;
  [[nodiscard]] Status read_fixed(RowBatch& batch) const;
  [[nodiscard]] Status read_variable(std::size_t bytes, RowBatch& batch) const;

  // Attached: finds rows() and bytes(). kCorrupt if the component is shorter than the file says.
  [[nodiscard]] Status open();

  component::Tail tail_;
  std::uint64_t rows_ = 0;
  std::uint64_t bytes_ = 0;
  Row next_ = 0, end_ = UINT64_MAX;
  mutable std::uint64_t bytes_read_ = 0;
};

// A component of an output: seen by nobody until the controller commits.
class Output : public Component {
 public:
  // Where its rows go: fixed records in any order, variable ones one after another. Only if is_made().
  access::RowSink& sink() {
    PIF_ASSERT(is_made());
    return *sink_;
  }
  // Writes the batch's rows at batch.first. Variable records: the next row. kInvalid: no component is here, or rows are
  // left out; else as component::Writer.
  [[nodiscard]] Status write(const RowBatch& batch);
  // For who filled files() without the sink (component::copy_component): how it ended. cloned: its data shares blocks
  // with another file; for the report. Only if is_made(), once, and nothing is written through the sink then.
  void set_tail(const component::Tail& tail, bool cloned);
  // Bytes of .dat, as far as the sink has them; 0 without a component.
  std::uint64_t bytes_written() const;
  // Whether that LFS of the file gets a component: not if its part of the length that the controller set is no rows.
  // But LFS 0 of a file without parity keeps the file's length.
  bool has_component(LfsIndex lfs) const;
  // Whether there is a component here.
  bool is_made() const { return sink_ != nullptr; }

 private:
  friend class Worker;
  using Component::Component;
  [[nodiscard]] Result<component::Tail> finish();

  std::unique_ptr<access::RowSink> sink_;
  bool cloned_ = false;
};

}  // namespace pif::tool
