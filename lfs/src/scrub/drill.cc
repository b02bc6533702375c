#include "scrub/drill.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "pif/wire/views.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kEntriesAtOnce = 256;  // of the catalogue, in one turn of the loop
constexpr std::size_t kErrorsMax = 100;      // that are reported
constexpr std::size_t kPieceBytes = 1u << 20;
constexpr std::uint64_t kPieceRows = 32768;
constexpr std::uint64_t kFirstNumber = std::uint64_t{1} << 62;  // of files without names: others count from 0
constexpr Duration kViewPatience = std::chrono::seconds(30);
constexpr Duration kTellAgain = std::chrono::milliseconds(200);
constexpr Duration kTurn = std::chrono::milliseconds(1);  // in which others go on

bool is_compared(const proto::ComponentState& state) {
  return state.state() == kCommitted && keeps_parity(state.shape());
}

tl::unexpected<Error> differs(FileId file, std::string_view what) {
  return fail(Code::kCorrupt,
              fmt::format("file {}: what its parity gives differs from what is here: {}", file.value, what));
}

// Bytes [0, size) of both.
Status same_bytes(FileId file, const component::Reader& own, const component::Reader& rebuilt, std::uint64_t size) {
  std::vector<std::byte> a(kPieceBytes), b(kPieceBytes);
  for (std::uint64_t at = 0; at < size; at += kPieceBytes) {
    const std::size_t n = std::min<std::uint64_t>(size - at, kPieceBytes);
    PIF_TRY(own.read_bytes(at, std::span(a).first(n)));
    PIF_TRY(rebuilt.read_bytes(at, std::span(b).first(n)));
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()))
      return differs(file, fmt::format("bytes {} to {}", at, at + n - 1));
  }
  return {};
}

// Where the first `rows` rows end.
Status same_ends(FileId file, const component::Reader& own, const component::Reader& rebuilt, std::uint64_t rows) {
  std::vector<std::uint64_t> a(kPieceRows + 1), b(kPieceRows + 1);
  for (Row row = 0; row < rows; row += kPieceRows) {
    const std::uint64_t n = std::min<std::uint64_t>(rows - row, kPieceRows);
    PIF_TRY(own.read_ends(row, n, std::span(a).first(n + 1)));
    PIF_TRY(rebuilt.read_ends(row, n, std::span(b).first(n + 1)));
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n + 1), b.begin()))
      return differs(file, fmt::format("the lengths of rows {} to {}", row, row + n - 1));
  }
  return {};
}

// What was appended without this LFS is not here.
void limit(FileLength& file_length, const Component& c, const component::Tail& own) {
  extend(file_length, file_length_of(c.state.published()));
  const LfsIndex index = c.state.shape().index();
  if (c.layout.rows(index, file_length.records) <= own.rows) return;
  PIF_ASSERT(own.rows > 0, c.file.value);
  const std::uint64_t records = c.layout.record_at({index, own.rows - 1}) + 1;
  PIF_ASSERT(records <= file_length.records, records, file_length.records);
  if (c.shape.format.is_fixed()) file_length.bytes = records * c.shape.format.record_length;
  file_length.records = records;
}

}  // namespace

Drill::Drill(Keeping& keeping, Reporting& reporting)
    : keeping_(keeping), context_(keeping.context), server_(reporting), news_(context_.fibers), number_(kFirstNumber) {
  context_.operations.bind<&Drill::drill>(*this);
  context_.operations.bind<&Drill::drill_status>(*this);
  context_.view_watchers.push_back(this);
  context_.fibers.start<&Drill::serve>(*this);
}

// ---- who asks ------------------------------------------------------------------------------------------------------

Result<net::Packet> Drill::drill(const Request& request, const proto::Drill& asked) {
  if (phase_ == Phase::kIdle) {
    if (own_state() != wire::kViewMember)
      return fail(Code::kUnavailable, fmt::format("{} is {}: there is no drill before it takes part again",
                                                  context_.config.name, wire::view_state_name(own_state())));
    if (!context_.lost_files.lacking().empty())
      return fail(Code::kUnavailable,
                  fmt::format("{} lacks its part of {} files (pif rebuild {}): there is no drill "
                              "before it has them",
                              context_.config.name, context_.lost_files.lacking().size(), context_.config.name));
    phase_ = Phase::kLeaving;
    begun_ = context_.now();
    files_ = files_total_ = bytes_ = bytes_total_ = differing_ = 0;
    errors_.clear();
    context_.view.end_lease();
    spdlog::warn("{} takes itself out for a drill", context_.config.name);
  }
  rate_.set(asked.bytes_per_second(), context_.now());
  news_.notify();
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> Drill::drill_status(const Request& request, const proto::DrillStatus&) {
  net::Packet reply = Replies::reply(request);
  proto::DrillStatusReply& out = *reply.envelope.mutable_drill_status_reply();
  out.set_is_running(phase_ != Phase::kIdle);
  out.set_files(files_);
  out.set_files_total(std::max(files_, files_total_));
  out.set_bytes(bytes_);
  out.set_bytes_total(std::max(bytes_, bytes_total_));
  out.set_differing(differing_);
  for (const Error& error : errors_) {
    auto& one = *out.add_errors();
    one.set_code(static_cast<std::uint32_t>(error.code));
    one.set_text(error.text);
    one.set_node(error.node);
  }
  const bool is_comparing = phase_ == Phase::kLeaving || phase_ == Phase::kComparing;
  const Duration elapsed = (is_comparing ? context_.now() : ended_) - begun_;
  out.set_elapsed_ms(static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count())));
  return reply;
}

// ---- phases --------------------------------------------------------------------------------------------------------

void Drill::note(Error error) {
  spdlog::error("drill: {}", error.text);
  if (errors_.size() < kErrorsMax) errors_.push_back(std::move(error));
}

void Drill::serve() {
  for (;;) {
    while (phase_ == Phase::kIdle) news_.wait();
    if (leave()) {
      compare_all();
      phase_ = Phase::kReturning;
      ended_ = context_.now();
      come_back();
    }
    phase_ = Phase::kIdle;
  }
}

// The server moves it; the view comes with a heartbeat.
Result<net::Packet> Drill::tell(wire::ViewState state) {
  net::Packet packet;
  packet.envelope.mutable_node_rebuilt()->set_node(context_.config.node);
  packet.envelope.mutable_node_rebuilt()->set_state(state);
  return server_.ask(std::move(packet));
}

bool Drill::leave() {
  const Time give_up_at = context_.now() + kViewPatience;
  auto said = tell(wire::kViewLost);
  if (said || access::is_lost(said.error().code)) {
    while (own_state() != wire::kViewLost && context_.now() < give_up_at) news_.wait(give_up_at);
    return true;
  }
  ended_ = context_.now();
  note(std::move(said.error()));
  return false;
}

void Drill::come_back() {
  while (own_state() != wire::kViewMember) {
    if (own_state() == wire::kViewLost) {
      (void)tell(wire::kViewRebuilding);
      news_.wait(context_.now() + kTellAgain);
    } else {
      news_.wait();
    }
  }
  spdlog::info("{} is back from a drill: {} files, {} bytes, {} differ", context_.config.name, files_, bytes_,
               differing_);
}

// ---- comparing -----------------------------------------------------------------------------------------------------

void Drill::compare_all() {
  if (own_state() != wire::kViewLost)
    return note({Code::kTimeout, "the view in which it does not take part did not come", context_.config.name});
  phase_ = Phase::kComparing;
  begun_ = context_.now();
  std::vector<FileId> files;
  bool has_more = true;
  for (std::uint64_t next = 0; has_more;) {
    has_more = list_files(next, files);
    context_.fibers.sleep_until(context_.now() + kTurn);
  }
  for (const FileId file : files) {
    while (own_state() == wire::kViewLost && !rate_.is_free(context_.now())) news_.wait(rate_.next());
    if (own_state() != wire::kViewLost)
      return note(
          {Code::kCancelled, "others count on it again: the drill is over before its end", context_.config.name});
    compare(file);
  }
}

bool Drill::list_files(std::uint64_t& next, std::vector<FileId>& files) {
  std::size_t seen = 0;
  const Status good = catalogue::each(context_.world.catalogue, FileId(next),
                                      [&](FileId file, const Result<proto::ComponentState>& state) {
                                        next = file.value + 1;
                                        ++seen;
                                        if (!state) note(state.error());
                                        if (state && is_compared(*state) && state->rows() > 0) {
                                          files.push_back(file);
                                          ++files_total_;
                                          bytes_total_ += state->bytes();
                                        }
                                        return seen < kEntriesAtOnce;
                                      });
  if (!good) note(good.error());
  return good && seen == kEntriesAtOnce && next != 0;
}

// Files that are gone meanwhile are passed over.
void Drill::compare(FileId file) {
  const auto found = context_.components.find(file);
  if (!found || !(*found)->catalogued || !is_compared((*found)->state)) return;
  Comparison comparison{*found, tail_of((*found)->state)};
  const Status same = rebuild_and_compare(comparison);
  if (comparison.component->is_removed()) return;
  ++files_;
  bytes_ += comparison.rebuilt.bytes;
  rate_.spend(comparison.rebuilt.bytes, context_.now());
  if (same) return;
  ++differing_;
  Error error = same.error();
  if (error.text.find("file ") != 0) error.text = fmt::format("file {} did not come back: {}", file.value, error.text);
  note(std::move(error));
}

Status Drill::rebuild_and_compare(Comparison& comparison) {
  const Component& c = *comparison.component;
  PIF_TRY_VALUE(FileLength file_length, ask_length(c));
  limit(file_length, c, comparison.own);
  PIF_TRY(rebuild(comparison, file_length));
  // Rows of this LFS that are not published yet are nobody's; a last one that was filled up without it is longer there.
  return keeping_.works.run([&, stem = context_.components.stem(c.file)]() -> Status {
    PIF_TRY_VALUE(auto own_files,
                  component::open_files(context_.world.storage, stem, c.shape.format, component::OpenMode::kRead));
    const component::Reader own(c.shape, comparison.own, own_files);
    const component::Reader rebuilt(c.shape, comparison.rebuilt, *comparison.files.readable);
    if (!c.shape.format.is_fixed()) PIF_TRY(same_ends(c.file, own, rebuilt, comparison.rebuilt.rows));
    return same_bytes(c.file, own, rebuilt, std::min(comparison.own.bytes, comparison.rebuilt.bytes));
  });
}

// Of the sequencer: LFS 0, or the deputy, if this is LFS 0. A file that was never appended to may be known to nobody
// else: it is as long as it was gathered.
Result<FileLength> Drill::ask_length(const Component& c) {
  PIF_TRY_VALUE(const auto grant, keeping_.peers.grant(c.state.shape(), c.state.epoch()));
  const bool is_first = c.state.shape().index() == 0;
  FileLength found;
  auto request = length_request({is_first ? parity::deputy_of(c.layout) : 0, c.file.value, is_first}, c.shape.format,
                                [&found](const LengthAnswer& answer) -> Status {
                                  found = answer.length;
                                  return {};
                                });
  request.patient = true;
  const Status asked =
      keeping_.peers.run(*grant, [&](access::Requests& requests) { requests.add(std::move(request)); });
  if (asked || asked.error().code == Code::kNotFound) return found;
  return fail(asked.error());
}

Status Drill::rebuild(Comparison& comparison, const FileLength& file_length) {
  const Component& c = *comparison.component;
  PIF_TRY_VALUE(auto grant, keeping_.peers.grant(c.state.shape(), c.state.epoch()));
  const auto rows = std::make_shared<AbsentRows>(AbsentRows{c.state.shape(), c.shape, c.layout, std::move(grant)});
  PIF_TRY(context_.check_space(RowsBack::bytes_of(*rows, file_length)));
  PIF_TRY_VALUE(comparison.files,
                make_nameless_files(context_.world.storage, context_.config.root, c.shape, number_++));
  RowsBack rows_back(keeping_, rows, file_length, RowsBack::Place{comparison.files.writable, {}, 0});
  const auto tail = rows_back.run();
  comparison.rebuilt = rows_back.tail();
  return tail ? Status() : Status(fail(tail.error()));
}

}  // namespace pif::lfs
