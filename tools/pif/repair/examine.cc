#include "repair/examine.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/wire/convert.h"

namespace pif::cli {
std::uint64_t bytes_of_rows(const parity::Layout& layout, LfsIndex index, std::uint32_t record_length,
                            const FileLength& file_length) {
  const std::uint64_t rows = layout.rows(index, file_length.records);
  if (rows == 0) return 0;
  const RecordNumber last = layout.record_at({index, rows - 1});
  return (rows - 1) * record_length + fixed_record_bytes(record_length, file_length, last);
}

namespace {

using Kind = Finding::Kind;

// The examination of one committed file.
class FileExam {
 public:
  FileExam(const FileRecord& file, const Held& held) : file_(file), held_(held) {}

  std::vector<Finding> run() {
    const auto layout = wire::layout_of(file_.layout());
    const auto format = wire::format_of(file_.format());
    if (!layout || !format) {
      add(Kind::kShape, 0, "the directory's own layout or format is not valid");
      return std::move(findings_);
    }
    const FileLength file_length = published();
    for (int i = 0; i < file_.layout().nodes_size(); ++i)
      check_one(*layout, *format, file_length, static_cast<LfsIndex>(i));
    check_strangers();
    if (findings_.empty() && !format->is_fixed()) check_sum_of_bytes(file_length);
    return std::move(findings_);
  }

 private:
  void add(Kind kind, std::uint32_t node, std::string text) {
    findings_.push_back({kind, file_.file(), node, file_.path(), std::move(text)});
  }

  // As the sequencer knows it; the directory's is a hint that is never ahead of it.
  FileLength published() {
    const FileLength hint = wire::file_length_of(file_.file_length());
    if (file_.layout().nodes_size() == 0) return hint;
    const auto first = held_.find(file_.layout().nodes(0));
    if (first == held_.end() || first->second.state() != kComponentCommitted) return hint;
    const FileLength now = wire::file_length_of(first->second.published());
    if (now.records < hint.records)
      add(Kind::kLength, first->first,
          fmt::format("published are {} records, the directory says {}", now.records, hint.records));
    return now.records < hint.records ? hint : now;
  }

  void check_one(const parity::Layout& layout, const Format& format, const FileLength& file_length, LfsIndex index) {
    const std::uint32_t node = file_.layout().nodes(static_cast<int>(index));
    const std::uint64_t rows = layout.rows(index, file_length.records);
    const auto found = held_.find(node);
    const bool keeps_parity =
        file_.layout().form() == 1 && layout.has_parity() && layout.parity_rows(index, file_length.records) > 0;
    if (found == held_.end()) {
      if (rows > 0) add(Kind::kMissing, node, fmt::format("its {} rows are not there", rows));
      if (rows == 0 && index == 0 && was_appended_to())
        add(Kind::kMissing, node, "it kept the length of a file that was appended to, and is not there");
      if (rows == 0 && keeps_parity) add(Kind::kMissing, node, "parity that it keeps is not there");
      return;
    }
    if (keeps_parity && !found->second.gathered() && found->second.parity_generation() == 0)
      add(Kind::kMissing, node, "parity that it keeps is not there");
    const proto::ComponentState& state = found->second;
    if (state.state() == kComponentOpen)
      add(Kind::kState, node, "the file is committed, its component still being written");
    if (!same_shape(state.shape(), index)) {
      add(Kind::kShape, node, "the component was made for another format or layout");
      return;
    }
    check_length(layout, format, file_length, index, state, rows);
  }

  // An append makes the component at LFS 0 first.
  bool was_appended_to() const {
    return std::any_of(held_.begin(), held_.end(), [](const auto& one) { return one.second.generation() > 0; });
  }

  bool same_shape(const proto::ComponentShape& shape, LfsIndex index) const {
    const auto& layout = file_.layout();
    return shape.index() == index && shape.format().kind() == file_.format().kind() &&
           shape.format().record_length() == file_.format().record_length() &&
           shape.format().delimiter() == file_.format().delimiter() && shape.layout().form() == layout.form() &&
           std::equal(shape.layout().nodes().begin(), shape.layout().nodes().end(), layout.nodes().begin(),
                      layout.nodes().end()) &&
           std::equal(shape.layout().bevies().begin(), shape.layout().bevies().end(), layout.bevies().begin(),
                      layout.bevies().end());
  }

  // Rows beyond the published length are what an append left that never finished; the next one writes over them.
  void check_length(const parity::Layout& layout, const Format& format, const FileLength& file_length, LfsIndex index,
                    const proto::ComponentState& state, std::uint64_t rows) {
    const std::uint32_t node = file_.layout().nodes(static_cast<int>(index));
    const bool appended = state.generation() > 0;
    if (state.rows() < rows || (state.rows() > rows && !appended)) {
      add(Kind::kLength, node, fmt::format("it has {} rows instead of {}", state.rows(), rows));
      return;
    }
    if (!format.is_fixed() || state.rows() != rows || rows == 0) return;
    const std::uint64_t bytes = bytes_of_rows(layout, index, format.record_length, file_length);
    if (state.bytes() != bytes && !(appended && state.bytes() > bytes))
      add(Kind::kLength, node, fmt::format("it has {} bytes instead of {}", state.bytes(), bytes));
  }

  void check_strangers() {
    for (const auto& [node, state] : held_) {
      const auto& nodes = file_.layout().nodes();
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end())
        add(Kind::kOrphan, node, "a component on an LFS that the file does not use");
    }
  }

  void check_sum_of_bytes(const FileLength& file_length) {
    std::uint64_t bytes = 0;
    bool appended = false;
    for (const auto& [node, state] : held_) {
      bytes += state.bytes();
      appended = appended || state.generation() > 0;
    }
    if (bytes != file_length.bytes && !appended)
      add(Kind::kLength, 0,
          fmt::format("its components have {} bytes together instead of {}", bytes, file_length.bytes));
  }

  const FileRecord& file_;
  const Held& held_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string kind_name(Finding::Kind kind) {
  switch (kind) {
    case Kind::kLeftover: return "leftover";
    case Kind::kOrphan: return "orphan";
    case Kind::kMissing: return "missing";
    case Kind::kShape: return "shape";
    case Kind::kLength: return "length";
    case Kind::kState: return "state";
    case Kind::kSums: return "sums";
    case Kind::kQuarantined: return "quarantined";
  }
  return "unknown";
}

std::vector<Finding> examine(std::uint64_t id, const FileRecord* file, const Held& held) {
  std::vector<Finding> findings;
  if (file != nullptr) {
    if (file->state() == kFileCommitted) return FileExam(*file, held).run();
    return findings;  // being made, or being removed: both sides know
  }
  for (const auto& [node, state] : held) {
    const bool committed = state.state() == kComponentCommitted;
    findings.push_back({committed ? Kind::kOrphan : Kind::kLeftover, id, node, "",
                        committed ? "a component that no file owns" : "a component of a file that was never finished"});
  }
  return findings;
}

}  // namespace pif::cli
