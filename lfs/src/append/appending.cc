#include "append/appending.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/sequencer.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kWaitingMax = 4096;               // per component
constexpr std::size_t kWaitingBytesMax = 128u << 20;    // of one user, whose rows wait for others before them
constexpr std::uint64_t kRoundBytesMax = 16u << 20;     // written before a sync
constexpr Duration kWaitMax = std::chrono::seconds(6);  // for rows before ours: longer than the deadline of a grant

// Where they begin in their component.
std::uint64_t begin_of(const component::Shape& shape, std::uint64_t first, std::uint32_t within) {
  return shape.format.is_fixed() ? first * shape.format.record_length + within : first;
}
std::uint64_t end_of(const Component& component) {
  return component.shape.format.is_fixed() ? component.writer->bytes() : component.writer->rows();
}

}  // namespace

bool Appending::Round::takes_more() const { return !is_closed && written && bytes < kRoundBytesMax; }

Appending::Appending(LfsContext& context) : context_(context) {
  context.operations.bind<&Appending::append_rows>(*this);
}

Status Appending::check(const Request& request) {
  const auto& asked = request.envelope().append_rows();
  if (asked.count() == 0) return fail(Code::kInvalid, "an append of no rows");
  if (!asked.has_base()) return fail(Code::kInvalid, "AppendRows lacks `base`, as Reserve gave it");
  // A file that nobody ever appended to is of generation 0: rows behind its end would be nobody's.
  if (asked.generation() == 0) return fail(Code::kInvalid, "AppendRows lacks `generation`, as Reserve gave it");
  PIF_TRY(lfs::check_generation(asked.generation()));
  if (asked.first() > INT64_MAX / kRecordLengthMax)
    return fail(Code::kTooLarge, fmt::format("row {} is past what a file can hold", asked.first()));
  return context_.check_space(request.packet.body.size());
}

// While it returns it lacks rows of files that it has not caught up with: what follows them waits.
Status Appending::check_takes_rows(const proto::ComponentShape& shape, const parity::Layout& layout, std::uint64_t rows,
                                   const FileLength& base) const {
  PIF_TRY(context_.check_present(shape));
  if (context_.view.state_of(context_.config.node) != wire::kViewReturning || !keeps_parity(shape)) return {};
  if (shape.index() < layout.width() && layout.rows(static_cast<LfsIndex>(shape.index()), base.records) <= rows)
    return {};
  return fail(Code::kRetry, fmt::format("{} is returning, and has not caught up with file {} yet", context_.config.name,
                                        shape.file()));
}

// Of the rows that LFS 0 itself has: a sequencer that was started again gives out generations of its own, and what the
// one before gave out may be of a state that is gone. With parity it may have to go above the deputy's.
Status Appending::check_generation(const Component& component, std::uint64_t generation) const {
  const auto own = context_.numbers.incarnation();
  const auto granted_by = generation >> Sequencer::kIncarnationShift;
  const bool sequences = component.state.shape().index() == 0 && own != 0;
  const bool is_foreign = sequences && (keeps_parity(component.state.shape()) ? granted_by < own : granted_by != own);
  if (!is_foreign && generation >= component.state.generation()) return {};
  return fail(Code::kRetry, "the reserved range was cancelled: reserve again");
}

// A file may have had no rows here until now: then the append makes the component, which nobody else sees before it is
// in the catalogue.
Result<ComponentPtr> Appending::component_of(const Request& request) {
  const auto& asked = request.envelope().append_rows();
  const FileId file(asked.file());
  const auto known = context_.components.find_in_memory(file);
  if (known && known->by_append && known->is_open() && !known->failure) {
    context_.components.touch(*known, context_.now());
    return known;
  }
  auto found = context_.published(request, file);
  const bool is_returning = context_.view.state_of(context_.config.node) == wire::kViewReturning;
  if (!found && found.error().code == Code::kUnavailable && is_returning)  // it does not have its part back yet
    return fail(Code::kRetry, std::move(found.error().text));
  if (found || found.error().code != Code::kNotFound || !asked.has_shape()) return found;
  PIF_TRY(context_.check_shape(asked.shape(), file));
  PIF_TRY_VALUE(const parity::Layout layout, layout_of(asked.shape().layout()));
  PIF_TRY(check_takes_rows(asked.shape(), layout, 0, file_length_of(asked.base())));
  if (is_older(asked.shape().layout())) return fail(unprotected(file));
  PIF_TRY(context_.check_has_no_part(asked.shape(), layout, asked.base().records()));
  found = context_.components.create(asked.shape(), request.capability.epoch, context_.now());
  if (found) (*found)->make_by_append();
  return found;
}

Status Appending::check_body(const Component& component, const proto::AppendRows& asked,
                             std::span<const std::byte> body) {
  if (!component.shape.format.is_fixed()) {
    if (asked.within() != 0) return fail(Code::kInvalid, "only fixed-length records can be filled up");
    PIF_TRY(parse_variable(body, asked.count()));
    return {};
  }
  const auto length = component.shape.format.record_length;
  const FileLength base = file_length_of(asked.base());  // this component's length is computed from it
  if (!is_fixed_file_length(length, base))
    return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes, as `base` says",
                                            base.records, length, base.bytes));
  if (asked.within() >= length || body.empty())
    return fail(Code::kInvalid, fmt::format("a fill from byte {} of a record of {}", asked.within(), length));
  PIF_TRY(last_row_bytes(asked.within() + body.size(), asked.count(), length));
  return {};
}

Status Appending::append_rows(const Request& request, const proto::AppendRows& asked) {
  PIF_TRY(check(request));
  PIF_TRY_VALUE(const ComponentPtr component, component_of(request));
  const Rows rows{asked.first(),
                  asked.count(),
                  asked.generation(),
                  asked.within(),
                  file_length_of(asked.base()),
                  request.packet.body.span()};
  PIF_TRY(LfsContext::check_not_older(*component));
  PIF_TRY(check_takes_rows(component->state.shape(), component->layout, component->state.rows(), rows.base));
  PIF_TRY(LfsContext::check_not_held(*component));
  PIF_TRY(check_body(*component, asked, rows.body));
  PIF_TRY(check_generation(*component, rows.generation));
  PIF_TRY_VALUE(Line* const line, line_of(component));
  ++line->requests;
  const daemon::AtExit leave([&] {
    if (--line->requests == 0) lines_.erase(component->file.value);
  });
  ComponentLock::Held held;
  PIF_TRY_VALUE(const auto place, wait_for_turn(request, *line, rows, held));
  if (*place == Place::kNow) return write(*line, rows, std::move(held));
  PIF_ASSERT(*place == Place::kThere, *place);
  held.release();
  const auto round = line->round;
  if (!round) return {};  // a repeated request: durable already
  wait_for_end(round);
  return *round->result;
}

Result<Appending::Line*> Appending::line_of(const ComponentPtr& component) {
  Line& line = lines_[component->file.value];
  if (!line.component) line.component = component;
  PIF_ASSERT(line.component->file == component->file, component->file.value);
  if (line.component != component)  // what waits and what is under way is of that one
    return fail(Code::kRetry, "an earlier component of the file is still being appended to");
  if (line.requests >= kWaitingMax) return fail(Code::kRetry, fmt::format("{} appends are waiting here", kWaitingMax));
  return &line;
}

// ---- a request's turn ----------------------------------------------------------------------------------------------

Result<daemon::Fresh<Appending::Place>> Appending::wait_for_turn(const Request& request, Line& line, const Rows& rows,
                                                                 ComponentLock::Held& held) {
  std::size_t& waiting_bytes = bytes_of_user_[request.who.uid.value_or(context_.config.uid)];
  PIF_TRY(check_room(waiting_bytes, request, line));
  waiting_bytes += rows.body.size();
  const daemon::AtExit end([&] {
    PIF_ASSERT(waiting_bytes >= rows.body.size(), waiting_bytes, rows.body.size());
    waiting_bytes -= rows.body.size();
  });
  const Time deadline = std::min(request.deadline, context_.now() + kWaitMax);
  for (;;) {
    PIF_TRY(check_there(*line.component));
    if (rows.generation < line.component->state.generation())
      return fail(Code::kRetry, "the reserved range was cancelled: reserve again");
    PIF_TRY_VALUE(const Place place, look(line, rows, deadline, held));
    if (place == Place::kWrong) return fail(Code::kInvalid, "these rows overlap others that are there");
    if (place != Place::kEarly) return daemon::Fresh<Place>(context_.fibers, place);
    if (held.is_held()) continue;  // it had to be waited for: all is looked at anew
    if (!wait_for_change(line, rows, deadline)) return fail(Code::kRetry, "the rows before these did not come in time");
  }
}

Result<Appending::Place> Appending::look(Line& line, const Rows& rows, Time deadline, ComponentLock::Held& held) {
  Component& c = *line.component;
  if (line.round) {
    if (!line.round->takes_more() || rows.generation > c.state.generation()) return Place::kEarly;
    const Place place = place_of(c, rows);
    // Who fills up a row reads what is durable of it.
    return place == Place::kNow && rows.within > 0 ? Place::kEarly : place;
  }
  if (!held.is_held()) {
    PIF_TRY(lock(line, deadline, held));
    return Place::kEarly;
  }
  if (rows.generation > c.state.generation()) {
    PIF_TRY(begin_generation(line.component, rows));
    return Place::kEarly;
  }
  PIF_TRY(context_.components.open_writer(c));
  const Place place = place_of(c, rows);
  if (place == Place::kEarly) held.release();  // others go first
  return place;
}

// Of several who want it one waits, and the others join the round that it begins.
Status Appending::lock(Line& line, Time deadline, ComponentLock::Held& held) {
  Component& c = *line.component;
  PIF_TRY(LfsContext::check_not_held(c));  // by a worker that came since
  held = c.lock.try_acquire(Mode::kAppend);
  if (held.is_held() || line.is_locking) return {};
  line.is_locking = true;
  const daemon::AtExit end([&] {
    line.is_locking = false;
    c.changed.notify();
  });
  PIF_TRY_VALUE(held, lock_component(context_.fibers, c, Mode::kAppend, deadline));
  return {};
}

Status Appending::check_room(std::size_t waiting_bytes, const Request& request, const Line& line) const {
  const Component& c = *line.component;
  const bool must_wait = request.envelope().append_rows().first() > c.state.rows() || c.lock.is_held(Mode::kAppend);
  if (!must_wait || waiting_bytes + request.packet.body.size() <= kWaitingBytesMax) return {};
  return fail(Code::kRetry, fmt::format("uid {} has {} MiB of rows waiting here",
                                        request.who.uid.value_or(context_.config.uid), kWaitingBytesMax >> 20));
}

bool Appending::wait_for_change(Line& line, const Rows& rows, Time until) {
  const auto id = context_.fibers.begin_wait();
  line.component->changed.add(id);
  const auto at = line.early.emplace(begin_of(line.component->shape, rows.first, rows.within), id);
  const daemon::AtExit leave([&] {
    line.early.erase(at);
    line.component->changed.remove(id);
  });
  return context_.fibers.wait(id, until);
}

Result<component::Tail> Appending::base_tail(Component& c, const FileLength& base) {
  const auto index = c.state.shape().index();
  const auto rows = c.layout.rows(index, base.records);
  const auto tail = tail_of(c.state);
  const auto lost = [&] {
    return fail(Code::kCorrupt,
                fmt::format("file {}: {} records are published, of which {} rows belong here, but there are {}",
                            name_of(c.file), base.records, rows, tail.rows));
  };
  // The sequencer may have published more in this generation already, and the deputy may be that; to the others, a
  // length that was published stays.
  const bool may_sequence = index == 0 || (keeps_parity(c.state.shape()) && parity::deputy_of(c.layout) == index);
  if (rows > tail.rows || (!may_sequence && base.records < c.state.published().records())) return lost();
  std::uint64_t bytes = 0;
  if (c.shape.format.is_fixed()) {
    bytes = fixed_component_bytes(c.layout, index, c.shape.format.record_length, rows, base);
    if (bytes > tail.bytes) return lost();
  } else if (rows == tail.rows) {
    bytes = tail.bytes;
  } else if (rows > 0) {
    PIF_TRY(context_.components.open_files(c, component::OpenMode::kRead));
    PIF_TRY(c.reader->read_ends(rows, 0, std::span(&bytes, 1)));
  }
  if (rows == tail.rows && bytes == tail.bytes) return tail;
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kRead));
  return tail_at(c.shape, *c.reader, rows, bytes);
}

Status Appending::begin_generation(const ComponentPtr& component, const Rows& rows) {
  Component& c = *component;
  PIF_ASSERT(rows.generation > c.state.generation(), rows.generation, c.state.generation());
  PIF_TRY_VALUE(const component::Tail tail, base_tail(c, rows.base));
  const auto change = [generation = rows.generation, base = rows.base, tail](proto::ComponentState& state) {
    set_tail(state, tail);
    state.set_generation(generation);
    const FileLength known = file_length_of(state.published());
    const bool is_longer = base.records > known.records || base.bytes > known.bytes;
    if (state.shape().index() != 0 && is_longer) *state.mutable_published() = wire::proto_of(base);
  };
  if (tail == tail_of(c.state)) {
    change(c.state);     // nothing to drop: durable with the rows
    c.changed.notify();  // those of an older generation
    return {};
  }
  // The catalogue must know the shorter length before the files lose what is past it.
  ++c.changes;
  PIF_ASSERT(c.lock.is_held(Mode::kAppend), c.file.value);
  context_.components.drop_writer(c);
  const Status committed = context_.batch.commit(component, change);
  context_.components.drop_writer(c);
  c.changed.notify();
  return committed;
}

Appending::Place Appending::place_of(const Component& c, const Rows& w) {
  if (c.shape.format.is_fixed()) {
    const std::uint64_t length = c.shape.format.record_length;
    const std::uint64_t begin = w.first * length + w.within;
    const std::uint64_t bytes = c.writer->bytes();
    if (begin == bytes) return Place::kNow;
    if (begin + w.body.size() <= bytes) return Place::kThere;
    if (begin < bytes) return Place::kWrong;
  } else {
    const auto rows = c.writer->rows();
    if (w.first == rows) return Place::kNow;
    if (w.first + w.count <= rows) return Place::kThere;
    if (w.first < rows) return Place::kWrong;
  }
  return Place::kEarly;
}

// ---- a round -------------------------------------------------------------------------------------------------------

Status Appending::write(Line& line, const Rows& rows, ComponentLock::Held held) {
  Component& c = *line.component;
  const bool is_first = !line.round;
  PIF_ASSERT(rows.generation == c.state.generation(), c.file.value, rows.generation);
  PIF_ASSERT(is_first ? held.is_held() : line.round->takes_more(), c.file.value, is_first);
  if (is_first) {
    PIF_ASSERT(c.writer && c.writer->rows() >= c.state.rows(), c.file.value, c.state.rows());
    line.round = std::make_shared<Round>(context_.fibers);
    line.round->held = std::move(held);
  }
  const auto round = line.round;
  round->bytes += rows.body.size();
  round->written = write_one(c, rows);
  for (auto at = line.early.begin(); at != line.early.end() && at->first <= end_of(c); ++at)
    context_.fibers.wake(at->second);
  if (!is_first) {
    wait_for_end(round);
    return *round->result;
  }
  round->result = make_durable(line.component, *round);
  PIF_ASSERT(line.round == round, c.file.value);
  line.round.reset();
  if (!*round->result) context_.components.drop_writer(c);  // the next one goes on after what is durable
  round->held.release();
  c.changed.notify();
  round->ended.notify();
  return *round->result;
}

void Appending::wait_for_end(const std::shared_ptr<Round>& round) {
  while (!round->result) round->ended.wait();
}

Status Appending::write_one(Component& c, const Rows& w) {
  return c.shape.format.is_fixed() ? write_fixed(c, w) : write_variable(c, w);
}

Status Appending::write_fixed(Component& c, const Rows& w) {
  if (w.within > 0) return fill_row(c, w);
  const auto length = c.shape.format.record_length;
  PIF_TRY_VALUE(const auto last, last_row_bytes(w.body.size(), w.count, length));
  return c.writer->write_rows(w.first, w.count, {w.body.data(), length}, last == length ? 0 : last);
}

Status Appending::fill_row(Component& c, const Rows& w) {
  PIF_ASSERT(c.reader && c.writer && w.within > 0, w.within);
  const std::size_t length = c.shape.format.record_length;
  std::vector<std::byte> row(length);
  PIF_TRY(c.reader->read_bytes(w.first * length, std::span(row).first(w.within)));
  const std::size_t added = std::min(length - w.within, w.body.size());
  PIF_ASSERT(w.within < length && added > 0, w.within, length);
  std::memcpy(row.data() + w.within, w.body.data(), added);
  const auto filled = static_cast<std::uint32_t>(w.within + added);
  PIF_TRY(c.writer->write_rows(w.first, 1, {row.data(), length}, filled == length ? 0 : filled));
  const std::size_t rest = w.body.size() - added;
  if (rest == 0) return {};
  PIF_TRY_VALUE(const auto last, last_row_bytes(rest, w.count - 1, static_cast<std::uint32_t>(length)));
  return c.writer->write_rows(w.first + 1, w.count - 1, {w.body.data() + added, length}, last == length ? 0 : last);
}

Status Appending::write_variable(Component& c, const Rows& w) {
  PIF_TRY_VALUE(const auto rows, parse_variable(w.body, w.count));
  PIF_ASSERT(w.first == c.writer->rows(), c.file.value, w.first, c.writer->rows());
  return c.writer->append_rows(rows.lengths, rows.data);
}

Status Appending::make_durable(const ComponentPtr& component, Round& round) {
  Component& c = *component;
  context_.fibers.settle();  // all who can write in this turn
  round.is_closed = true;
  PIF_TRY(check_there(c));
  PIF_TRY(round.written);
  PIF_ASSERT(c.writer && round.held.is_held(), c.file.value);
  PIF_TRY_VALUE(const component::Tail tail, c.writer->finish());
  PIF_ASSERT(tail.rows >= c.state.rows() && tail.bytes >= c.state.bytes(), tail.rows, c.state.rows());
  const std::uint64_t applied = c.applied;
  // A component that is not in the catalogue is new: its names must become durable too.
  const auto folder = c.catalogued ? std::string() : context_.components.folder(c.file);
  const Status synced = context_.disk([&, files = c.files]() -> Status {
    PIF_TRY(component::sync(*files));
    return folder.empty() ? Status() : context_.world.storage.sync_folder(folder);
  });
  PIF_TRY(check_there(c));  // perhaps out of service, by a sync of its parity
  if (!synced) {
    context_.components.set_failed(c, synced.error());
    spdlog::error("{}", c.failure->text);
    return fail(*c.failure);
  }
  const auto change = [tail, applied, generation = c.state.generation()](proto::ComponentState& state) {
    set_tail(state, tail);
    state.set_generation(generation);
    state.set_log_applied(std::max(state.log_applied(), applied));
    state.set_state(kCommitted);
  };
  return context_.batch.commit(component, change);
}

}  // namespace pif::lfs
