#include "runs/inputs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr std::uint64_t kRowsMax = UINT32_MAX;  // an element has 32 bits for its row

Range common_to(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

}  // namespace

Result<Inputs> Inputs::open(tool::Worker& worker, std::uint64_t skipped) {
  Inputs inputs;
  inputs.skipped_ = skipped;
  inputs.workers_ = worker.width();
  for (std::size_t i = 0; i < worker.input_count(); ++i) PIF_TRY(inputs.add(worker, i));
  if (inputs.inputs_.empty()) return fail(Code::kInvalid, "the job has no input");
  for (std::uint32_t source = 0; source < inputs.ranks_.size(); ++source) {
    if (inputs.ranks_[source] == worker.rank()) inputs.source_ = source;
    if (inputs.numbers_.rows(source) > kRowsMax)
      return fail(Code::kTooLarge,
                  fmt::format("{} rows on one LFS; {} can be sorted", inputs.numbers_.rows(source), kRowsMax));
  }
  return inputs;
}

Status Inputs::add(tool::Worker& worker, std::size_t which) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(which));
  inputs_.push_back(input);
  PIF_TRY_VALUE(const auto ranks, worker.ranks_on(*input));
  std::vector<std::uint32_t> sources;
  for (const std::uint32_t rank : ranks) {
    const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
    sources.push_back(static_cast<std::uint32_t>(found - ranks_.begin()));
    if (found == ranks_.end()) ranks_.push_back(rank);
  }
  const Range records{std::min(skipped_, input->file_length().records), input->file_length().records};
  numbers_.add(input->layout(), sources, records);
  file_length_.records += records.size();
  file_length_.bytes += input->file_length().bytes;
  return input->is_here() ? add_part(*input, input->layout().rows(input->index(), records)) : Status();
}

Status Inputs::add_part(tool::Input& input, Range rows) {
  if (rows.empty()) return {};
  Part part{&input, {0, rows.size()}, {}, rows.begin, rows.begin * input.format().record_length};
  if (!input.format().is_fixed()) {
    std::array<std::uint64_t, 2> ends{};
    PIF_TRY(input.reader().read_ends(rows.begin, 1, ends));
    part.first_byte = ends[0];
  }
  if (!parts_.empty()) part.rows = {parts_.back().rows.end, parts_.back().rows.end + rows.size()};
  part.bytes = {bytes(), bytes() + (input.bytes() - part.first_byte)};
  parts_.push_back(part);
  return {};
}

std::vector<std::uint64_t> Inputs::rows_by_rank() const {
  std::vector<std::uint64_t> rows(workers_);
  for (std::uint32_t source = 0; source < ranks_.size(); ++source) rows[ranks_[source]] = numbers_.rows(source);
  return rows;
}

std::vector<Row> Inputs::first_rows() const {
  std::vector<Row> rows;
  for (const Part& part : parts_) rows.push_back(part.rows.begin);
  return rows;
}

void Inputs::count_read(std::uint64_t bytes) {
  bytes_read_ += bytes;
  inputs_[0]->count_read(bytes);
}

Status Inputs::read_rows(Row first, std::uint64_t count, component::Rows out) const {
  for (const Part& part : parts_) {
    const Range rows = common_to(part.rows, {first, first + count});
    if (rows.empty()) continue;
    PIF_TRY(part.input->reader().read_rows(part.first_row + (rows.begin - part.rows.begin), rows.size(),
                                           {out.base + (rows.begin - first) * out.stride, out.stride}));
  }
  return {};
}

Status Inputs::read_ends(Row first, std::uint64_t count, std::span<std::uint64_t> ends) const {
  for (const Part& part : parts_) {
    const Range rows = common_to(part.rows, {first, first + count});
    if (rows.empty()) continue;
    const auto its = ends.subspan(rows.begin - first, rows.size() + 1);
    PIF_TRY(part.input->reader().read_ends(part.first_row + (rows.begin - part.rows.begin), rows.size(), its));
    for (std::uint64_t& end : its) end = end - part.first_byte + part.bytes.begin;
  }
  return {};
}

Status Inputs::read_bytes(std::uint64_t offset, std::span<std::byte> out) const {
  for (const Part& part : parts_) {
    const Range bytes = common_to(part.bytes, {offset, offset + out.size()});
    if (bytes.empty()) continue;
    PIF_TRY(part.input->reader().read_bytes(part.first_byte + (bytes.begin - part.bytes.begin),
                                            out.subspan(bytes.begin - offset, bytes.size())));
  }
  return {};
}

Result<tool::Scratch> Inputs::map() {
  if (!is_whole()) return fail(Code::kUnsupported, "what is here is not one component");
  return parts_[0].input->map();
}

Status Inputs::check(std::uint64_t offset, std::uint64_t size, const tool::Scratch& mapped) const {
  return parts_[0].input->check(offset, size, mapped);
}

}  // namespace pif::sort
