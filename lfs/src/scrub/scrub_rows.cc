#include "scrub/scrub_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kWindowBytes = 1u << 20;
constexpr std::uint64_t kWindowRows = 64u << 10;
constexpr std::uint64_t kStreamBytes = 4u << 20;  // then the window ends earlier
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kLookAgain = std::chrono::milliseconds(50);

}  // namespace

void ScrubRows::run() {
  bool is_over = job_.is_gone();
  while (!is_over) {
    if (const Status begun = begin(); !begun) return job_.pass.report.add(component_->file, begun.error().text, false);
    is_over = look();
  }
}

Status ScrubRows::begin() {
  ++tries_;
  bad_.clear();
  tail_ = tail_of(component_->state);
  const std::uint64_t published = job_.keeper.layout.rows(job_.keeper.index, job_.published.records);
  rows_ = std::min(published, tail_.rows);
  next_ = offset_ = 0;
  is_lost_ = false;
  kept_.reset();
  data_.reset();
  index_.reset();
  files_.reset();
  if (published > tail_.rows)
    return fail(Code::kCorrupt, fmt::format("file {}: {} rows belong here, and there are {}", name_of(component_->file),
                                            published, tail_.rows));
  if (grant_) return {};
  auto granted = job_.pass.keeping.peers.grant(component_->state.shape(), component_->state.epoch());
  if (granted)
    grant_ = std::move(*granted);
  else
    lacking_ = granted.error().text;
  return {};
}

bool ScrubRows::look() {
  if (tail_.rows == 0) return true;
  while (!is_all()) {
    job_.pass.pace();
    if (job_.is_gone()) return true;
    begin_window();
    fetch();
    if (job_.is_gone()) return true;
    const Status compared = compare();
    if (job_.is_gone()) return true;
    if (!compared) {
      job_.pass.report.add(component_->file, compared.error().text, false);
      return true;
    }
    if (!repair()) return false;
    if (job_.is_gone()) return true;
  }
  return true;
}

// ---- rows from those who keep their parity -------------------------------------------------------------------------

// One behind the published rows has none.
void ScrubRows::begin_window() {
  streams_.clear();
  end_ = next_;
  if (next_ >= rows_) return;
  const std::uint64_t n = job_.keeper.size();
  const std::uint64_t row_bytes = std::max<std::uint64_t>(1, tail_.bytes / tail_.rows);
  std::uint64_t rows = std::clamp<std::uint64_t>(kWindowBytes / row_bytes, 1, kWindowRows);
  const std::uint64_t group = n * job_.keeper.shape.page_rows();
  if (rows > group) rows -= rows % group;
  end_ = std::min(next_ + rows, rows_);
  job_.spend((end_ - next_) * row_bytes);
  for (Row first = next_; first < std::min(end_, next_ + n); ++first) {
    Stream& stream = streams_.emplace_back();
    stream.keeper = job_.keeper.layout.parity_of({job_.keeper.index, first}).lfs;
    stream.first = first;
    stream.count = (end_ - first - 1) / n + 1;
  }
}

// All streams at once.
void ScrubRows::fetch() {
  if (streams_.empty()) return;
  const Status status =
      grant_ ? job_.pass.keeping.peers.run<&ScrubRows::ask_all>(*grant_, *this) : fail(Code::kUnavailable, lacking_);
  if (status) return;
  for (Stream& stream : streams_) {
    if (left_of(stream) == 0) continue;
    job_.miss(job_.name_of(stream.keeper), status.error());
    if (lacking_.empty()) lacking_ = fmt::format("{}: {}", job_.name_of(stream.keeper), status.error().text);
    skip(stream, left_of(stream));
  }
}

void ScrubRows::ask_all(access::Requests& requests) {
  for (Stream& stream : streams_) ask(requests, stream);
}

// Rows of a page from the next one on that the stream has; the page of row q is the same at all keepers.
std::uint64_t ScrubRows::left_of_page(const Stream& stream) const {
  const std::uint64_t n = job_.keeper.size(), page_rows = job_.keeper.shape.page_rows();
  const std::uint64_t parity_row = (stream.first + stream.lengths.size() * n) / n;
  return page_rows - parity_row % page_rows;
}

void ScrubRows::skip(Stream& stream, std::uint64_t count) {
  stream.begins.insert(stream.begins.end(), count, stream.bytes.size());
  stream.lengths.insert(stream.lengths.end(), count, kMissing);
}

// What is left of the stream; one that has got long is cut off.
void ScrubRows::ask(access::Requests& requests, Stream& stream) {
  if (left_of(stream) == 0 || stream.bytes.size() >= kStreamBytes) return;
  if (job_.is_away(stream.keeper)) {
    job_.miss_away(stream.keeper);
    if (lacking_.empty()) lacking_ = job_.name_of(stream.keeper) + " is away";
    return skip(stream, left_of(stream));
  }
  stream.asked = stream.is_single ? std::min(left_of(stream), left_of_page(stream)) : left_of(stream);
  access::BulkRequest request;
  request.lfs = stream.keeper;
  request.bytes = std::clamp<std::uint64_t>(stream.asked * job_.row_bytes(), 1, kBulkBytes);
  request.patient = true;
  request.make = [this, &stream] { return question(stream); };
  request.take = [this, &requests, &stream](net::Packet& reply) -> Status {
    if (const Status taken = take(stream, reply); !taken) pass_over(stream, taken.error());
    ask(requests, stream);
    return {};
  };
  request.refused = [this, &requests, &stream](const Error& error) -> Status {
    pass_over(stream, error);
    ask(requests, stream);
    return {};
  };
  requests.add(std::move(request));
}

net::Packet ScrubRows::question(const Stream& stream) const {
  const std::uint64_t n = job_.keeper.size();
  net::Packet packet;
  proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
  asked.set_file(component_->file.value);
  asked.set_index(job_.keeper.index);
  asked.set_first(stream.first + stream.lengths.size() * n);
  asked.set_count((stream.asked - 1) * n + 1);
  *asked.mutable_file_length() = wire::proto_of(job_.published);
  return packet;
}

Status ScrubRows::take(Stream& stream, const net::Packet& reply) {
  const std::uint64_t rows = reply.envelope.read_reply().rows();
  const auto body = reply.body.span();
  if (rows == 0 || rows > stream.asked)
    return fail(Code::kInvalid, fmt::format("{} rows came for {}", rows, stream.asked));
  std::vector<std::uint32_t> lengths;
  std::span<const std::byte> data = body;
  if (job_.keeper.format().is_fixed()) {
    PIF_TRY_VALUE(const std::uint32_t last, last_row_bytes(body.size(), rows, job_.keeper.format().record_length));
    lengths.assign(rows, job_.keeper.format().record_length);
    lengths.back() = last;
  } else {
    PIF_TRY_VALUE(VariableBody parsed, parse_variable(body, rows));
    lengths = std::move(parsed.lengths);
    data = parsed.data;
  }
  std::uint64_t begin = stream.bytes.size();
  for (const std::uint32_t length : lengths) {
    stream.begins.push_back(begin);
    stream.lengths.push_back(length);
    begin += length;
  }
  stream.bytes.insert(stream.bytes.end(), data.begin(), data.end());
  PIF_ASSERT(begin == stream.bytes.size() && stream.lengths.size() <= stream.count, begin, stream.bytes.size());
  return {};
}

// What cannot be had, as little as possible: a page that is bad has others around it.
void ScrubRows::pass_over(Stream& stream, const Error& error) {
  const bool is_one_page = stream.is_single || stream.asked <= left_of_page(stream);
  // It is away, or another member of all its groups, whom it names in its text.
  if (access::is_lost(error.code)) job_.note_away(stream.keeper);
  if (is_one_page || error.code != Code::kCorrupt) {
    if (lacking_.empty()) lacking_ = fmt::format("{}: {}", job_.name_of(stream.keeper), error.text);
    job_.miss(job_.name_of(stream.keeper), error);
    skip(stream, is_one_page ? stream.asked : left_of(stream));
  }
  stream.is_single = true;
}

// ---- comparing -----------------------------------------------------------------------------------------------------

// Streams that were cut off end the window.
Status ScrubRows::compare() {
  PIF_ASSERT(bad_.empty() && !component_->is_removed(), component_->file.value);
  const std::uint64_t n = job_.keeper.size();
  Row end = end_;
  for (const Stream& stream : streams_)
    if (left_of(stream) > 0) end = std::min(end, stream.first + stream.lengths.size() * n);
  PIF_ASSERT(end > next_ || streams_.empty(), end, next_);
  PIF_TRY(open());  // here, where it is not removed at the same time: nobody would know of files made anew then
  job_.pass.keeping.works.run([&] { feed(end, end == rows_); });
  next_ = end;
  bad_ = data_->take_bad();
  if (!index_) return {};
  for (BadChunk& bad : index_->take_bad()) bad_.push_back(std::move(bad));
  return {};
}

Status ScrubRows::open() {
  if (files_) return {};
  // One that is missing is like one that ends before its first byte.
  const auto mode = job_.pass.only_look ? component::OpenMode::kRead : component::OpenMode::kCreate;
  PIF_TRY_VALUE(files_, component::open_files(job_.storage, job_.stem, component_->shape.format, mode));
  data_.emplace(ScrubStream::kData, component_->shape, tail_, *files_);
  if (!component_->shape.format.is_fixed()) index_.emplace(ScrubStream::kIndex, component_->shape, tail_, *files_);
  return {};
}

void ScrubRows::feed(Row end, bool is_last) {
  if (component_->shape.format.is_fixed())
    feed_fixed(end);
  else
    feed_variable(end);
  if (!is_last) return;
  if (is_lost_) {
    data_->skip(data_->size() - data_->position());
    index_->skip(index_->size() - index_->position());
    return;
  }
  data_->skip_rest();
  if (index_) index_->skip_rest();
}

// As it came; not known: nothing came.
std::span<const std::byte> ScrubRows::row_of(Row row, bool& is_known) const {
  const std::uint64_t n = job_.keeper.size();
  const Stream& stream = streams_[(row - next_) % n];
  const std::uint64_t i = (row - stream.first) / n;
  PIF_ASSERT(row >= stream.first && i < stream.lengths.size(), row, stream.first, stream.lengths.size());
  is_known = stream.lengths[i] != kMissing;
  if (!is_known) return {};
  return std::span(stream.bytes).subspan(stream.begins[i], stream.lengths[i]);
}

// The last row may be longer here than it was published.
void ScrubRows::feed_fixed(Row end) {
  const std::uint64_t length = component_->shape.format.record_length;
  const std::uint64_t all = published_bytes();
  for (Row row = next_; row < end; ++row) {
    bool is_known = false;
    auto bytes = row_of(row, is_known);
    const std::uint64_t own = std::min(length, all - row * length);
    bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), own));
    data_->add(bytes);
    data_->skip(own - bytes.size());
  }
}

void ScrubRows::feed_variable(Row end) {
  if (is_lost_) return;
  std::vector<std::uint64_t> ends(end - next_ + 1);
  const component::Reader reader(component_->shape, tail_, *files_);
  const bool has_ends = end > next_ && reader.read_ends(next_, end - next_, ends).has_value();
  for (Row row = next_; row < end; ++row) {
    bool is_known = false;
    const auto bytes = row_of(row, is_known);
    if (!is_known && !has_ends) {
      is_lost_ = true;  // by their own sums from here on
      return;
    }
    const std::uint64_t i = row - next_;
    const std::uint64_t length = is_known ? bytes.size() : ends[i + 1] - ends[i];
    offset_ += length;
    if (is_known)
      data_->add(bytes);
    else
      data_->skip(length);
    index_->add(std::as_bytes(std::span(&offset_, 1)));
  }
}

// Rows that were appended and not published may have been dropped, and others written: then the sums were not those of
// the bytes, and all is looked at again.
bool ScrubRows::is_changed() const {
  return component_->lock.is_held(Mode::kAppend, Mode::kOverwrite, Mode::kRestore) ||
         tail_of(component_->state) != tail_;
}

// ---- repair --------------------------------------------------------------------------------------------------------

// No bad chunk is the last one.
bool ScrubRows::is_whole() const {
  for (const BadChunk& bad : bad_)
    if (bad.place.end >= (bad.stream == ScrubStream::kData ? tail_.bytes : tail_.rows * 8)) return false;
  return true;
}

bool ScrubRows::repair() {
  LfsContext& context = job_.context();
  const Time patience = context.now() + kPatience;
  while (!bad_.empty()) {
    job_.pass.await_leave();
    if (job_.is_gone()) return true;
    const bool is_whole = this->is_whole();
    const bool is_sure =
        is_whole && std::all_of(bad_.begin(), bad_.end(), [](const BadChunk& bad) { return bad.is_known; });
    auto held = component_->lock.try_acquire(Mode::kRewrite);  // nothing is appended meanwhile
    const bool is_free = held.is_held() && !component_->dirty;
    if (!is_free) held.release();
    if (!is_free && (!job_.pass.only_look || !is_sure) && context.now() < patience) {
      job_.pass.wait_until(context.now() + kLookAgain);
      continue;
    }
    if (!is_sure && is_changed() && tries_ < kTriesMax) return false;
    if (is_free && !kept_ && may_forget_rest()) {
      held.release();
      if (!forget_rest(patience)) return false;
      continue;
    }
    take_those_to_write(!job_.pass.only_look && is_free && (is_whole || !is_changed()));
    if (!bad_.empty()) rewrite();
  }
  return true;
}

// The others are reported. But what is wholly behind the published rows is no damage of the file.
void ScrubRows::take_those_to_write(bool may_write) {
  std::vector<BadChunk> to_write;
  for (BadChunk& bad : bad_) {
    if (bad.published == 0) continue;
    if (may_write && bad.is_known && !bad.has_rest())
      to_write.push_back(std::move(bad));
    else
      report(bad, false, why_left(bad));
  }
  bad_ = std::move(to_write);
}

std::string ScrubRows::why_left(const BadChunk& bad) const {
  if (job_.pass.only_look) return "not repaired, as was asked for";
  if (!bad.is_known) return "not repaired: its rows cannot be had: " + lacking_;
  if (bad.has_rest() && kept_) return "not repaired: it has rows that may be published yet: " + kept_->text;
  return "not repaired: it is in use";
}

Status ScrubRows::rewrite_bad() {
  PIF_TRY_VALUE(auto files,
                component::open_files(job_.storage, job_.stem, component_->shape.format, component::OpenMode::kWrite));
  PIF_TRY(rewrite_chunks(component_->shape, tail_, files, bad_));
  return job_.storage.sync_folder(job_.folder());
}

void ScrubRows::rewrite() {
  PIF_ASSERT(component_->lock.is_held(Mode::kRewrite), component_->file.value);
  const Status status = job_.pass.keeping.works.run<&ScrubRows::rewrite_bad>(*this);
  const auto bad = std::exchange(bad_, {});
  if (component_->is_removed()) return;
  // A file that was missing is another one now than the LFS has open: rows that are appended go there.
  job_.context().components.close_files(*component_);
  for (const BadChunk& chunk : bad)
    report(chunk, status.has_value(),
           status ? "rebuilt out of the parity that others keep" : "not repaired: " + status.error().text);
}

void ScrubRows::report(const BadChunk& bad, bool is_repaired, const std::string& what) const {
  job_.report(fmt::format("file {}, bytes {} to {} of {} here: {}; {}", name_of(component_->file), bad.place.begin,
                          bad.place.end, bad.stream == ScrubStream::kData ? ".dat" : ".idx", bad.why, what),
              is_repaired);
}

}  // namespace pif::lfs
