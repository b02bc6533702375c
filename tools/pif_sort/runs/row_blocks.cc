#include "runs/row_blocks.h"

#include <algorithm>
#include <cstring>

namespace pif::sort {
namespace {

constexpr std::size_t kRowBlockBytes = 256u << 10;  // at least, but at the end of a share

}  // namespace

RowBlockMaker::RowBlockMaker(const tool::Output& output, Range numbers)
    : record_length_(output.format().record_length),
      chunk_rows_(component::chunk_bytes_for(output.format()) / record_length_),
      least_rows_(std::max<std::uint64_t>(kRowBlockBytes / record_length_, 1)),
      open_(output.layout().width()) {
  for (LfsIndex lfs = 0; lfs < open_.size(); ++lfs) {
    const Range rows = output.layout().rows(lfs, numbers);
    open_[lfs].next = rows.begin;
    open_[lfs].end = rows.end;
  }
  to_ = output.layout().locate(numbers.begin).lfs;
}

// Up to the first end of a chunk after enough rows.
void RowBlockMaker::begin(Open& open) const {
  const Row enough = open.next + least_rows_;
  const Row chunk_end = (enough + chunk_rows_ - 1) / chunk_rows_ * chunk_rows_;
  open.first = open.next;
  open.next = std::min(chunk_end, open.end);
  open.body = net::Buffer((open.next - open.first) * record_length_);
  open.used = 0;
}

void RowBlockMaker::put(Bytes record) {
  Open& open = open_[to_];
  if (open.body.empty()) begin(open);
  std::memcpy(open.body.data() + open.used, record.data(), record_length_);
  open.used += record_length_;
  if (open.used == open.body.size()) {
    made_.push_back({to_, open.first, open.next - open.first, std::move(open.body)});
    open.body = {};
  }
  if (++to_ == open_.size()) to_ = 0;
}

}  // namespace pif::sort
