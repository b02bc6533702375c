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

Error gone() { return {Code::kStaleFile, "the file was deleted meanwhile", {}}; }

}  // namespace

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

void Appending::append_rows(const Request& request, const proto::AppendRows& asked) {
  if (auto ok = check(request); !ok) return context_.replies.answer(request, fail(std::move(ok.error())));
  auto component = component_of(request);
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if (auto ok = LfsContext::check_not_older(**component); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  if (auto ok = check_takes_rows((*component)->state.shape(), (*component)->layout, (*component)->state.rows(),
                                 file_length_of(asked.base()));
      !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  if (auto ok = context_.check_not_held(**component); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  if (auto ok = check_body(**component, asked, request.packet.body.span()); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  if (auto ok = check_generation(**component, asked.generation()); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  const std::uint32_t uid = request.who.uid.value_or(context_.config.uid);
  std::size_t& waiting_bytes = bytes_of_user_[uid];
  const std::size_t body_bytes = request.packet.body.size();
  const bool must_wait = asked.first() > (*component)->state.rows() || (*component)->stage() == Stage::kAppending;
  if (must_wait && waiting_bytes + body_bytes > kWaitingBytesMax)
    return context_.replies.answer(request, fail(Code::kRetry, fmt::format("uid {} has {} MiB of rows waiting here",
                                                                           uid, kWaitingBytesMax >> 20)));
  Line& line = lines_[asked.file()];
  if (line.component && line.component != *component)  // what waits and what is under way is of that one
    return context_.replies.answer(request,
                                   fail(Code::kRetry, "an earlier component of the file is still being appended to"));
  line.component = *component;
  if (line.waiting.size() >= kWaitingMax)
    return context_.replies.answer(request,
                                   fail(Code::kRetry, fmt::format("{} appends are waiting here", kWaitingMax)));
  line.waiting.push_back({context_.replies.defer(request), asked.first(), asked.count(), asked.generation(),
                          asked.within(), file_length_of(asked.base()),
                          net::Buffer::copy_of(request.packet.body.span()),
                          std::min(request.deadline, context_.now() + kWaitMax), Charge(waiting_bytes, body_bytes),
                          QueuedChange(std::move(*component))});
}

void Appending::advance() {
  for (auto at = lines_.begin(); at != lines_.end();) {
    const auto next = std::next(at);
    advance(at->second);
    if (at->second.waiting.empty() && !at->second.busy) lines_.erase(at);
    at = next;
  }
}

Time Appending::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, line] : lines_)
    for (const auto& waiting : line.waiting) out = std::min(out, waiting.deadline);
  return out;
}

void Appending::advance(Line& line) {
  Component& c = *line.component;
  PIF_ASSERT(!line.busy || c.stage() == Stage::kAppending || c.failure || c.is_removed(), c.file.value, c.stage());
  refuse_late(line);
  if (line.busy) return;
  if (c.is_removed() || c.failure) {
    const Error why = c.is_removed() ? gone() : *c.failure;
    for (auto& waiting : std::exchange(line.waiting, {})) context_.replies.answer(waiting.token, Status(fail(why)));
    return;
  }
  if (context_.may(Operation::kAppend, c) != Permission::kNow) return;
  refuse_old(line);
  if (line.waiting.empty() || !begin_generation(line)) return;
  write_ready(line);
}

void Appending::refuse(Line& line, const std::function<bool(const Waiting&)>& is_refused, const char* why) {
  std::erase_if(line.waiting, [&](const Waiting& waiting) {
    if (!is_refused(waiting)) return false;
    context_.replies.answer(waiting.token, Status(fail(Code::kRetry, why)));
    return true;
  });
}

// Whatever the component is busy with: it may be restored, and that waits for others.
void Appending::refuse_late(Line& line) {
  const Time now = context_.now();
  refuse(
      line, [now](const Waiting& waiting) { return waiting.deadline <= now; },
      "the rows before these did not come in time");
}

void Appending::refuse_old(Line& line) {
  const std::uint64_t newest = line.component->state.generation();
  refuse(
      line, [newest](const Waiting& waiting) { return waiting.generation < newest; },
      "the reserved range was cancelled: reserve again");
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

// True when the component is at the newest generation that anybody waits with.
bool Appending::begin_generation(Line& line) {
  Component& c = *line.component;
  PIF_ASSERT(!line.waiting.empty() && !line.busy, c.file.value);
  const auto newest = std::max_element(line.waiting.begin(), line.waiting.end(),
                                       [](const Waiting& a, const Waiting& b) { return a.generation < b.generation; });
  if (newest->generation == c.state.generation()) return true;
  PIF_ASSERT(newest->generation > c.state.generation(), newest->generation, c.state.generation());
  const auto generation = newest->generation;
  const auto base = newest->base;
  const auto tail = base_tail(c, base);
  if (!tail) {
    std::erase_if(line.waiting, [&](Waiting& waiting) {
      if (waiting.generation == generation) context_.replies.answer(waiting.token, Status(fail(tail.error())));
      return waiting.generation == generation;
    });
    return false;
  }
  const auto change = [generation, base, t = *tail](proto::ComponentState& state) {
    set_tail(state, t);
    state.set_generation(generation);
    const FileLength known = file_length_of(state.published());
    const bool is_longer = base.records > known.records || base.bytes > known.bytes;
    if (state.shape().index() != 0 && is_longer) *state.mutable_published() = wire::proto_of(base);
  };
  if (*tail == tail_of(c.state)) {
    change(c.state);  // nothing to drop: durable with the rows
    refuse_old(line);
    return true;
  }
  // The catalogue must know the shorter length before the files lose what is past it.
  ++c.changes;
  line.busy = true;
  c.enter(Stage::kAppending);
  context_.components.drop_writer(c);
  context_.batch.update(line.component, change, [this, &line](const Status& status) {
    line.busy = false;
    line.component->end_change();
    context_.components.drop_writer(*line.component);
    if (status) return;
    for (auto& waiting : std::exchange(line.waiting, {})) context_.replies.answer(waiting.token, status);
  });
  return false;
}

Appending::Place Appending::place_of(const Component& c, const Waiting& w) const {
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

void Appending::write_ready(Line& line) {
  Component& c = *line.component;
  if (auto opened = context_.components.open_writer(c); !opened) {
    for (auto& waiting : std::exchange(line.waiting, {})) context_.replies.answer(waiting.token, opened);
    return;
  }
  PIF_ASSERT(c.writer && c.writer->rows() >= c.state.rows(), c.file.value, c.state.rows());
  std::vector<ReplyToken> tokens;
  Status failed;
  std::uint64_t bytes = 0;
  for (bool again = true; again && failed && bytes < kRoundBytesMax;) {
    again = false;
    for (auto at = line.waiting.begin(); at != line.waiting.end() && failed && bytes < kRoundBytesMax;) {
      const auto place = place_of(c, *at);
      if (place == Place::kEarly || (at->within > 0 && place == Place::kNow && !tokens.empty())) {
        ++at;
        continue;
      }
      if (place == Place::kNow) {
        failed = write_one(c, *at);
        bytes += at->body.size();
        again = true;
        tokens.push_back(at->token);
      } else if (place == Place::kThere && tokens.empty()) {
        context_.replies.answer(at->token, Status());  // a repeated request: durable already
      } else if (place == Place::kThere) {
        tokens.push_back(at->token);  // durable with this round
      } else {
        context_.replies.answer(at->token, Status(fail(Code::kInvalid, "these rows overlap others that are there")));
      }
      at = line.waiting.erase(at);
    }
  }
  if (!failed) {
    context_.components.drop_writer(c);  // the next one goes on after what is durable
    return answer_all(tokens, failed);
  }
  if (!tokens.empty()) make_durable(line, std::move(tokens));
}

Status Appending::write_one(Component& c, const Waiting& w) {
  return c.shape.format.is_fixed() ? write_fixed(c, w) : write_variable(c, w);
}

Status Appending::write_fixed(Component& c, const Waiting& w) {
  if (w.within > 0) return fill_row(c, w);
  const auto length = c.shape.format.record_length;
  PIF_TRY_VALUE(const auto last, last_row_bytes(w.body.size(), w.count, length));
  return c.writer->write_rows(w.first, w.count, {w.body.data(), length}, last == length ? 0 : last);
}

Status Appending::fill_row(Component& c, const Waiting& w) {
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

Status Appending::write_variable(Component& c, const Waiting& w) {
  PIF_TRY_VALUE(const auto rows, parse_variable(w.body.span(), w.count));
  PIF_ASSERT(w.first == c.writer->rows(), c.file.value, w.first, c.writer->rows());
  return c.writer->append_rows(rows.lengths, rows.data);
}

void Appending::make_durable(Line& line, std::vector<ReplyToken> tokens) {
  Component& c = *line.component;
  PIF_ASSERT(!line.busy && c.writer && !tokens.empty(), c.file.value);
  auto tail = c.writer->finish();
  if (!tail) {
    context_.components.drop_writer(c);
    return answer_all(tokens, fail(std::move(tail.error())));
  }
  PIF_ASSERT(tail->rows >= c.state.rows() && tail->bytes >= c.state.bytes(), tail->rows, c.state.rows());
  line.busy = true;
  c.enter(Stage::kAppending);
  auto result = std::make_shared<Status>();
  // A component that is not in the catalogue is new: its names must become durable too.
  const auto folder = c.catalogued ? std::string() : context_.components.folder(c.file);
  auto work = [files = c.files, result, folder, storage = &context_.world.storage] {
    *result = component::sync(*files);
    if (*result && !folder.empty()) *result = storage->sync_folder(folder);
  };
  auto done = [this, &line, result, t = *tail, applied = c.applied, tokens = std::move(tokens)] {
    Component& component = *line.component;
    const bool is_out_of_service = component.failure.has_value();  // by a sync of its parity, perhaps
    if (*result && !component.is_removed() && !is_out_of_service) return publish_rows(line, t, applied, tokens);
    line.busy = false;
    if (component.is_removed()) return answer_all(tokens, fail(gone()));
    if (!is_out_of_service) {
      context_.components.set_failed(component, result->error());
      spdlog::error("{}", component.failure->text);
    }
    answer_all(tokens, fail(*component.failure));
  };
  context_.world.executor.submit(std::move(work), std::move(done));
}

void Appending::publish_rows(Line& line, const component::Tail& tail, std::uint64_t applied,
                             std::vector<ReplyToken> tokens) {
  PIF_ASSERT(line.busy && line.component->stage() == Stage::kAppending, line.component->file.value);
  const auto generation = line.component->state.generation();
  const auto change = [tail, applied, generation](proto::ComponentState& state) {
    set_tail(state, tail);
    state.set_generation(generation);
    state.set_log_applied(std::max(state.log_applied(), applied));
    state.set_state(kCommitted);
  };
  context_.batch.update(line.component, change, [this, &line, tokens = std::move(tokens)](const Status& status) {
    line.component->end_change();
    line.busy = false;
    if (!status) context_.components.drop_writer(*line.component);
    answer_all(tokens, status);
  });
}

void Appending::answer_all(const std::vector<ReplyToken>& tokens, const Status& status) {
  for (const auto token : tokens) context_.replies.answer(token, status);
}

}  // namespace pif::lfs
