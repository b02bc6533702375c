#include "pif/tool/partition.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "pif/base/assert.h"
#include "pif/tool/scatter.h"

namespace pif::tool {
namespace {

// In front of each record, on its way and in scratch.
struct RecordHead {
  std::uint64_t number = 0;
  std::uint32_t length = 0;
  static auto members(auto& self) { return std::tie(self.number, self.length); }
};
const std::size_t kHeadBytes = pack_head(RecordHead()).size();

// What came from one worker: by rising number.
struct Source {
  Scratch scratch;
  std::span<const std::byte> rest;
  std::optional<RecordHead> head;  // of the record at the front; nothing at the end

  // To the next one. False: it is none.
  bool go_on() {
    head.reset();
    if (rest.empty()) return true;
    if (rest.size() < kHeadBytes) return false;
    const auto text = rest.first(kHeadBytes);
    head = unpack_head<RecordHead>({reinterpret_cast<const char*>(text.data()), text.size()});
    rest = rest.subspan(kHeadBytes);
    return head && head->length <= rest.size();
  }
};

}  // namespace

struct Partition::Impl {
  std::vector<Source> sources;  // by rank
  std::uint64_t bytes = 0;
  std::vector<RecordNumber> numbers;  // of the last batch

  Status gather(Worker& worker, Team& team, Input& input, const Owner& owner);
  Status open();
  std::optional<std::uint32_t> first() const;
};

// ---- sending and taking ---------------------------------------------------------------------------------------------

Status Partition::Impl::gather(Worker& worker, Team& team, Input& input, const Owner& owner) {
  Scatter scatter(team, worker.width(), [this](std::uint32_t from, std::span<const std::byte> come) {
    PIF_ASSERT(from < sources.size(), from, sources.size());
    return sources[from].scratch.append(come);
  });
  RowBatch batch;
  while (input.is_here()) {
    PIF_TRY_VALUE(const bool more, input.next(batch));
    if (!more) break;
    Row row = batch.first;
    batch.for_each([&](std::span<const std::byte> record) {
      const RecordNumber number = input.layout().record_at({input.index(), row++});
      std::string& body = scatter.to(owner(number, record));
      body += pack_head(RecordHead{number, static_cast<std::uint32_t>(record.size())});
      body.append(reinterpret_cast<const char*>(record.data()), record.size());
    });
    for (std::uint32_t rank = 0; rank < worker.width(); ++rank) PIF_TRY(scatter.step(rank));
    worker.progress(input.bytes_read(), input.bytes());
  }
  return scatter.end();
}

Status Partition::Impl::open() {
  for (std::uint32_t rank = 0; rank < sources.size(); ++rank) {
    Source& source = sources[rank];
    PIF_TRY(source.scratch.map());
    source.rest = source.scratch.bytes();
    if (!source.go_on()) return sent_nonsense(rank, "records that are cut off");
  }
  return {};
}

Result<Partition> Partition::make(Worker& worker, Team& team, Input& input, const Owner& owner) {
  auto impl = std::make_unique<Impl>();
  impl->sources.resize(worker.width());
  for (Source& source : impl->sources) {
    PIF_TRY_VALUE(source.scratch, worker.scratch());
  }
  PIF_TRY(impl->gather(worker, team, input, owner));
  for (const Source& source : impl->sources) impl->bytes += source.scratch.size();
  PIF_TRY(impl->open());
  return Partition(std::move(impl));
}

// ---- giving ---------------------------------------------------------------------------------------------------------

std::optional<std::uint32_t> Partition::Impl::first() const {
  std::optional<std::uint32_t> found;
  for (std::uint32_t rank = 0; rank < sources.size(); ++rank) {
    const auto& head = sources[rank].head;
    if (head && (!found || head->number < sources[*found].head->number)) found = rank;
  }
  return found;
}

Result<bool> Partition::next(RowBatch& batch) {
  batch = {};
  impl_->numbers.clear();
  while (batch.data.size() < kBatchBytes) {
    const auto rank = impl_->first();
    if (!rank) break;
    Source& source = impl_->sources[*rank];
    PIF_ASSERT(source.head && source.head->length <= source.rest.size(), *rank, source.rest.size());
    const auto record = source.rest.first(source.head->length);
    batch.data.insert(batch.data.end(), record.begin(), record.end());
    batch.lengths.push_back(source.head->length);
    impl_->numbers.push_back(source.head->number);
    ++batch.count;
    source.rest = source.rest.subspan(record.size());
    if (!source.go_on()) return sent_nonsense(*rank, "records that are cut off");
  }
  PIF_ASSERT(batch.lengths.size() == batch.count && impl_->numbers.size() == batch.count, batch.count);
  return batch.count > 0;
}

std::uint64_t Partition::bytes() const { return impl_->bytes; }
std::span<const RecordNumber> Partition::numbers() const { return impl_->numbers; }

Partition::Partition(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Partition::Partition(Partition&&) noexcept = default;
Partition& Partition::operator=(Partition&&) noexcept = default;
Partition::~Partition() = default;

}  // namespace pif::tool
