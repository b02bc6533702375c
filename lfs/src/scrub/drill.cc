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
constexpr std::size_t kErrorsMax = 100;      // that are told of
constexpr std::size_t kPieceBytes = 1u << 20;
constexpr std::uint64_t kPieceRows = 32768;
constexpr std::uint64_t kFirstNumber = std::uint64_t{1} << 62;  // of files without names: others count from 0
constexpr Duration kViewPatience = std::chrono::seconds(30);
constexpr Duration kTellAgain = std::chrono::milliseconds(200);

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

}  // namespace

Drill::Drill(Keeping& keeping, Rebuild::Ask ask)
    : keeping_(keeping), context_(keeping.context), ask_(std::move(ask)), number_(kFirstNumber) {
  context_.operations.bind<&Drill::drill>(*this);
  context_.operations.bind<&Drill::drill_status>(*this);
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
    give_up_at_ = context_.now() + kViewPatience;
    context_.view.end_lease();
    spdlog::warn("{} takes itself out for a drill", context_.config.name);
    tell(wire::kViewLost);
  }
  rate_.set(asked.bytes_per_second(), context_.now());
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

// The server moves it; the view comes with a heartbeat.
void Drill::tell(wire::ViewState state) {
  PIF_ASSERT(!is_telling_, static_cast<unsigned>(phase_));
  is_telling_ = true;
  net::Packet packet;
  packet.envelope.mutable_node_rebuilt()->set_node(context_.config.node);
  packet.envelope.mutable_node_rebuilt()->set_state(state);
  ask_(std::move(packet), [this](Result<net::Packet> reply) {
    is_telling_ = false;
    next_try_ = context_.now() + kTellAgain;
    if (reply || access::is_lost(reply.error().code)) return;
    if (phase_ != Phase::kLeaving) return;
    phase_ = Phase::kIdle;
    ended_ = context_.now();
    note(std::move(reply.error()));
  });
}

void Drill::tick() {
  switch (phase_) {
    case Phase::kIdle: return;
    case Phase::kLeaving:
      if (own_state() == wire::kViewLost) return begin_comparing();
      if (context_.now() < give_up_at_) return;
      note({Code::kTimeout, "the view in which it does not take part did not come", context_.config.name});
      phase_ = Phase::kReturning;
      ended_ = context_.now();
      return;
    case Phase::kComparing:
      if (own_state() != wire::kViewLost && !turn_) {
        note({Code::kCancelled, "others count on it again: the drill is over before its end", context_.config.name});
        phase_ = Phase::kReturning;
        ended_ = context_.now();
        return;
      }
      return compare_some();
    case Phase::kReturning:
      if (own_state() == wire::kViewMember) {
        phase_ = Phase::kIdle;
        spdlog::info("{} is back from a drill: {} files, {} bytes, {} differ", context_.config.name, files_, bytes_,
                     differing_);
        return;
      }
      if (own_state() == wire::kViewLost && !is_telling_ && context_.now() >= next_try_) tell(wire::kViewRebuilding);
      return;
  }
}

Time Drill::next_deadline() const {
  switch (phase_) {
    case Phase::kIdle: return kNever;
    case Phase::kLeaving: return give_up_at_;
    case Phase::kComparing: return turn_ ? kNever : rate_.is_limited() ? rate_.next() : Time{};
    case Phase::kReturning: return is_telling_ || own_state() != wire::kViewLost ? kNever : next_try_;
  }
  return kNever;
}

// ---- comparing -----------------------------------------------------------------------------------------------------

void Drill::begin_comparing() {
  PIF_ASSERT(phase_ == Phase::kLeaving && !turn_, static_cast<unsigned>(phase_));
  phase_ = Phase::kComparing;
  begun_ = context_.now();
  next_id_ = 0;
  has_all_ = false;
  queue_.clear();
}

void Drill::refill() {
  PIF_ASSERT(phase_ == Phase::kComparing && !has_all_, next_id_, queue_.size());
  std::size_t seen = 0;
  const Status good = catalogue::each(context_.world.catalogue, FileId(next_id_),
                                      [&](FileId file, const Result<proto::ComponentState>& state) {
                                        next_id_ = file.value + 1;
                                        ++seen;
                                        if (!state) note(state.error());
                                        if (state && is_compared(*state) && state->rows() > 0) {
                                          queue_.push_back(file);
                                          ++files_total_;
                                          bytes_total_ += state->bytes();
                                        }
                                        return seen < kEntriesAtOnce;
                                      });
  if (!good) note(good.error());
  has_all_ = !good || seen < kEntriesAtOnce || next_id_ == 0;
}

void Drill::compare_some() {
  if (turn_ || !rate_.is_free(context_.now())) return;
  if (!has_all_) return refill();
  if (!queue_.empty()) {
    const FileId file = queue_.front();
    queue_.pop_front();
    return start(file);
  }
  phase_ = Phase::kReturning;
  ended_ = context_.now();
  if (!is_telling_) tell(wire::kViewRebuilding);
}

// Files that are gone meanwhile are passed over.
void Drill::start(FileId file) {
  PIF_ASSERT(!turn_, file.value);
  const auto found = context_.components.find(file);
  if (!found || !(*found)->catalogued || !is_compared((*found)->state)) return;
  turn_ = std::make_shared<Turn>();
  turn_->component = *found;
  turn_->own = tail_of(turn_->component->state);
  find_length(turn_);
}

// Of the sequencer: LFS 0, or the deputy, if this is LFS 0.
void Drill::find_length(const TurnPtr& turn) {
  const Component& c = *turn->component;
  PIF_ASSERT(turn == turn_ && !turn->grant, c.file.value);
  auto granted = keeping_.peers.grant(c.state.shape(), c.state.epoch());
  if (!granted) return end_turn(fail(std::move(granted.error())));
  turn->grant = std::move(*granted);
  const bool is_first = c.state.shape().index() == 0;
  auto request = length_request({is_first ? parity::deputy_of(c.layout) : 0, c.file.value, is_first}, c.shape.format,
                                [turn](const LengthTold& told) -> Status {
                                  turn->file_length = told.length;
                                  return {};
                                });
  request.patient = true;
  keeping_.peers.run(
      *turn->grant, [&request](access::Requests& requests) { requests.add(std::move(request)); },
      [this, turn](const Status& status) {
        // A file that was never appended to may be known to nobody else: it is as long as it was gathered.
        if (!status && status.error().code != Code::kNotFound) return end_turn(status);
        auto begun = limit(*turn);
        if (begun) begun = rebuild(turn);
        if (!begun) end_turn(begun);
      });
}

// What was appended without this LFS is not here.
Status Drill::limit(Turn& turn) const {
  const Component& c = *turn.component;
  const FileLength known = file_length_of(c.state.published());
  extend(turn.file_length, known);
  const LfsIndex index = c.state.shape().index();
  if (c.layout.rows(index, turn.file_length.records) <= turn.own.rows) return {};
  PIF_ASSERT(turn.own.rows > 0, c.file.value);
  const std::uint64_t records = c.layout.record_at({index, turn.own.rows - 1}) + 1;
  PIF_ASSERT(records <= turn.file_length.records, records, turn.file_length.records);
  turn.file_length.bytes = c.shape.format.is_fixed() ? records * c.shape.format.record_length : turn.file_length.bytes;
  turn.file_length.records = records;
  return {};
}

Status Drill::rebuild(const TurnPtr& turn) {
  const Component& c = *turn->component;
  PIF_ASSERT(turn == turn_ && !turn->rows_back, c.file.value);
  PIF_TRY_VALUE(auto grant, keeping_.peers.grant(c.state.shape(), c.state.epoch()));
  const auto rows = std::make_shared<AbsentRows>(AbsentRows{c.state.shape(), c.shape, c.layout, std::move(grant)});
  PIF_TRY(context_.check_space(RowsBack::bytes_of(*rows, turn->file_length)));
  PIF_TRY_VALUE(turn->files, make_nameless_files(context_.world.storage, context_.config.root, c.shape, number_++));
  turn->rows_back =
      std::make_shared<RowsBack>(keeping_, rows, turn->file_length, RowsBack::Place{turn->files.writable, {}, 0});
  turn->rows_back->start([this, turn](const Status& status, const component::Tail& tail) {
    turn->rebuilt = tail;
    if (!status) return end_turn(status);
    compare(turn);
  });
  return {};
}

// Rows of this LFS that are not published yet are nobody's; a last one that was filled up without it is longer there.
void Drill::compare(const TurnPtr& turn) {
  PIF_ASSERT(turn == turn_ && turn->files.readable != nullptr, turn->component->file.value);
  keeping_.works.submit(
      [turn, &storage = context_.world.storage, stem = context_.components.stem(turn->component->file)] {
        const Component& c = *turn->component;
        auto files = component::open_files(storage, stem, c.shape.format, component::OpenMode::kRead);
        if (!files) {
          turn->result = fail(std::move(files.error()));
          return;
        }
        const component::Reader own(c.shape, turn->own, *files);
        const component::Reader rebuilt(c.shape, turn->rebuilt, *turn->files.readable);
        if (!c.shape.format.is_fixed()) turn->result = same_ends(c.file, own, rebuilt, turn->rebuilt.rows);
        if (turn->result)
          turn->result = same_bytes(c.file, own, rebuilt, std::min(turn->own.bytes, turn->rebuilt.bytes));
      },
      [this, turn] { end_turn(turn->result); });
}

void Drill::end_turn(const Status& status) {
  PIF_ASSERT(turn_ != nullptr, files_);
  const TurnPtr turn = std::exchange(turn_, nullptr);
  if (turn->component->is_removed()) return;
  ++files_;
  bytes_ += turn->rebuilt.bytes;
  rate_.spend(turn->rebuilt.bytes, context_.now());
  if (status) return;
  ++differing_;
  Error error = status.error();
  if (error.text.find("file ") != 0)
    error.text = fmt::format("file {} did not come back: {}", turn->component->file.value, error.text);
  note(std::move(error));
}

}  // namespace pif::lfs
