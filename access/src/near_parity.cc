#include "pif/access/near_parity.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"

namespace pif::access {

NearParity::NearParity(component::Storage& storage, const FileParts& parts, Others others)
    : storage_(storage), parts_(parts), others_(std::move(others)) {
  PIF_ASSERT(can_be_rebuilt(parts) && others_ != nullptr, parts.layout.width());
}

void NearParity::open(Requests& requests, LfsIndex lfs) {
  if (!parts_.format.is_fixed() || away_.contains(lfs)) return;
  const auto keepers = parts_.layout.keepers(lfs);
  std::set<LfsIndex> needed;
  for (const LfsIndex keeper : keepers) {
    if (!kept_.contains(keeper)) ask(requests, keeper);
    needed.insert(kept_[keeper].members.begin(), kept_[keeper].members.end());
  }
  needed.erase(lfs);
  away_[lfs] = {keepers, {needed.begin(), needed.end()}};
}

void NearParity::ask(Requests& requests, LfsIndex keeper) {
  Kept& kept = kept_[keeper];
  auto members = parts_.layout.members(keeper);
  kept.shape = {parts_.file, parts_.format, std::move(members.offsets)};
  kept.members = std::move(members.lfs);
  BulkRequest request;
  request.lfs = keeper;
  request.replaceable = true;
  request.admit = [](const Link& link) -> Result<bool> { return link.passes_descriptors; };
  request.make = [id = parts_.file] {
    net::Packet packet;
    packet.envelope.mutable_attach_parity()->set_file(id.value);
    return packet;
  };
  request.take = [this, &kept](net::Packet& reply) -> Status {
    auto files = component::adopt_parity(storage_, std::move(reply.handles));
    if (!files) return {};
    kept.files = std::move(*files);
    kept.pages = reply.envelope.attach_parity_reply().state().pages();
    kept.is_here = kept.files.pages != nullptr && kept.files.sums != nullptr;
    return {};
  };
  request.refused = [](const Error&) -> Status { return {}; };
  requests.add(std::move(request));
}

bool NearParity::has(LfsIndex lfs) const {
  const auto away = away_.find(lfs);
  if (away == away_.end()) return false;
  const auto is_kept = [this](LfsIndex keeper) { return kept_.at(keeper).is_here; };
  const auto is_read = [this](LfsIndex other) { return others_(other).has_reader(); };
  return std::all_of(away->second.keepers.begin(), away->second.keepers.end(), is_kept) &&
         std::all_of(away->second.needed.begin(), away->second.needed.end(), is_read);
}

Status NearParity::read(const ReadPart& part) const {
  PIF_ASSERT(part.rows.rows > 0, part.rows.lfs);
  for (const KeptRows& rows : by_keeper(parts_.layout, part.rows)) {
    const auto at = kept_.find(rows.keeper);
    PIF_ASSERT(at != kept_.end() && at->second.is_here, rows.keeper);
    const Row first = parts_.layout.parity_of({part.rows.lfs, rows.first}).row;
    PIF_TRY(read_kept(part, at->second, {first, first + rows.count}));
  }
  return {};
}

// The rows of part's LFS in these parity rows of one keeper.
Status NearParity::read_kept(const ReadPart& part, Kept& kept, Range parity_rows) const {
  const std::uint64_t page_rows = kept.shape.page_rows();
  const auto member = static_cast<std::size_t>(std::find(kept.members.begin(), kept.members.end(), part.rows.lfs) -
                                               kept.members.begin());
  PIF_ASSERT(member < kept.members.size(), part.rows.lfs);
  if (parity_rows.end > kept.pages * page_rows)
    return fail(Code::kEndOfFile, fmt::format("{}: rows that are in no page", parts_.path));
  std::vector<std::unique_ptr<component::RowSource>> readers;
  std::vector<component::RowSource*> sources;
  for (const LfsIndex lfs : kept.members) {
    readers.push_back(lfs == part.rows.lfs ? nullptr
                                           : component::make_row_source(parts_.stored_shape(), others_(lfs).reader()));
    sources.push_back(readers.back().get());
  }
  const std::size_t length = parts_.format.record_length;
  for (std::uint64_t page = parity_rows.begin / page_rows; page * page_rows < parity_rows.end; ++page) {
    PIF_TRY_VALUE(const component::PackedRows rows,
                  component::rebuild_stretch(kept.shape, kept.files, page, member, sources));
    PIF_ASSERT(rows.bytes.size() == page_rows * length, rows.bytes.size(), page_rows, length);
    const Range of_page{page * page_rows, (page + 1) * page_rows};
    const Range wanted{std::max(of_page.begin, parity_rows.begin), std::min(of_page.end, parity_rows.end)};
    for (std::uint64_t row = wanted.begin; row < wanted.end; ++row) {
      const RecordNumber record = parts_.layout.record_at({part.rows.lfs, kept.shape.row_of(member, row)});
      PIF_ASSERT(record >= part.origin, record, part.origin);
      // A last record that was short may be whole by now: there is room for what was known of it.
      const bool is_known = record < part.file_length.records;
      const std::size_t bytes =
          is_known ? fixed_record_bytes(parts_.format.record_length, part.file_length, record) : length;
      std::memcpy(part.out + (record - part.origin) * length, rows.bytes.data() + (row - of_page.begin) * length,
                  bytes);
    }
  }
  return {};
}

}  // namespace pif::access
