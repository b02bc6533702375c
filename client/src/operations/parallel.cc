#include "pif/client/parallel.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "file/file_state.h"
#include "operations/opening.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/builders.h"
#include "session/in_use.h"

namespace pif {

using client::FileState;
using client::in_use;
using client::Session;

namespace {

constexpr std::size_t kLengthBytes = 4;                   // in front of the group's token in a token
constexpr Duration kTellEvery = std::chrono::seconds(1);  // how far a member is that has still rounds to do

// A token for members: that of the group, and, of a file that is written, that of its sharing.
std::string joined(const std::string& group, const std::string& share) {
  std::string token;
  PIF_ASSERT(group.size() <= UINT32_MAX, group.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) token += static_cast<char>(group.size() >> (8 * i));
  return token + group + share;
}

struct Tokens {
  std::string_view group;
  std::string_view share;
};

Result<Tokens> parted(std::string_view token) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes && i < token.size(); ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(token[i])) << (8 * i);
  if (token.size() < kLengthBytes || size > token.size() - kLengthBytes)
    return fail(Code::kBadCapability, "this is no token of a parallel-open");
  return Tokens{token.substr(kLengthBytes, size), token.substr(kLengthBytes + size)};
}

}  // namespace

// ---- controller ----------------------------------------------------------------------------------------------------

struct ParallelController::State {
  File* file = nullptr;
  ParallelOptions options;
  std::uint64_t group = 0;
  std::string token;
  bool writes = false;
  bool is_closed = false;
  std::uint64_t released = 0;  // rounds, in all
  std::uint64_t done = 0;      // that all have done

  Session& session() const { return *file->state().session; }

  // Until all members have done so many; what was released goes with it.
  Status await(std::uint64_t rounds) {
    const Time deadline = session().clock().now() + session().timeout();
    PIF_ASSERT(rounds <= released, rounds, released);
    Time patience = deadline;
    while (true) {
      proto::Release request;
      request.set_group(group);
      request.set_released(released);
      request.set_wait_for(rounds);
      PIF_TRY_VALUE(const proto::ReleaseReply reply, session().call(std::move(request)));
      if (reply.done() > done) patience = session().clock().now() + session().timeout();
      done = std::max(done, reply.done());
      if (done >= rounds) return {};
      if (session().clock().now() >= patience)
        return fail(Code::kTimeout,
                    fmt::format("members have done {} of {} rounds, and none for {} s", done, rounds,
                                std::chrono::duration_cast<std::chrono::seconds>(session().timeout()).count()));
    }
  }
  Status end() {
    is_closed = true;
    return in_use(session().user(), [&]() -> Status {
      proto::ParallelClose request;
      request.set_group(group);
      PIF_TRY(session().call(std::move(request)));
      return {};
    });
  }
  Status check_open() const {
    return is_closed ? Status(fail(Code::kInvalid, "no more rounds: it is closed")) : Status();
  }
};

ParallelController::ParallelController(std::unique_ptr<State> state) : state_(std::move(state)) {}
ParallelController::ParallelController(ParallelController&&) noexcept = default;
ParallelController& ParallelController::operator=(ParallelController&&) noexcept = default;
ParallelController::~ParallelController() {
  if (state_ && !state_->is_closed) static_cast<void>(state_->end().has_value());
}

Result<ParallelController> ParallelController::open(File& file, const ParallelOptions& options) {
  FileState& state = file.state();
  std::string share;
  const bool writes = state.creating();
  if (writes) {
    PIF_TRY_VALUE(share, file.share());
  }
  return in_use(state.session->user(), [&]() -> Result<ParallelController> {
    PIF_TRY(state.check_usable());
    proto::ParallelOpen request;
    request.set_file(state.parts.file.value);
    request.set_members(options.members);
    request.set_position(options.position);
    request.set_writes(writes);
    PIF_TRY_VALUE(const proto::ParallelOpenReply reply, state.session->call(std::move(request)));
    auto made = std::make_unique<State>();
    made->file = &file;
    made->options = options;
    made->group = reply.group();
    made->token = joined(reply.token(), share);
    made->writes = writes;
    return ParallelController(std::move(made));
  });
}

const std::string& ParallelController::token() const { return state_->token; }

Result<std::uint64_t> ParallelController::read(std::uint64_t rounds) {
  return in_use(state_->session().user(), [&]() -> Result<std::uint64_t> {
    PIF_TRY(state_->check_open());
    PIF_TRY_VALUE(const FileLength length, state_->file->state().length.get(true));
    const std::uint64_t members = state_->options.members;
    const std::uint64_t begin = state_->options.position + state_->released * members;
    const std::uint64_t left = begin >= length.records ? 0 : length.records - begin;
    rounds = std::min(rounds, (left + members - 1) / members);
    if (rounds == 0) return 0;
    state_->released += rounds;
    const std::uint64_t credit = state_->options.rounds_in_flight;
    PIF_TRY(state_->await(state_->released > credit ? state_->released - credit : 0));
    return std::min(left, rounds * members);
  });
}

Status ParallelController::write(std::uint64_t rounds) {
  return in_use(state_->session().user(), [&]() -> Status {
    PIF_TRY(state_->check_open());
    if (!state_->writes) return fail(Code::kInvalid, "this file is open for reading");
    state_->released += rounds;
    return state_->await(state_->released);
  });
}

Status ParallelController::wait() {
  return in_use(state_->session().user(), [&] { return state_->await(state_->released); });
}

// Who has not joined yet would find no group: so all that was released is done first.
Status ParallelController::close() {
  if (state_->is_closed) return {};
  const Status waited = wait();
  const Status ended = state_->end();
  return waited ? ended : waited;
}

// ---- member --------------------------------------------------------------------------------------------------------

struct ParallelMember::State {
  Client* client = nullptr;
  File file;
  std::uint64_t group = 0;
  std::uint32_t index = 0;
  std::uint32_t members = 0;
  RecordNumber position = 0;
  bool writes = false;
  std::uint64_t done = 0;      // rounds
  std::uint64_t released = 0;  // as it heard last
  bool has_ended = false;      // no more will be
  Time tell_at{};              // the controller gives up when it hears of no progress

  RecordNumber record(std::uint64_t round) const { return position + round * members + index; }

  // Until there is a round to be done, or the end. What was done is reported with it, and now and then where it need
  // not wait.
  Status await() {
    Session& session = *file.state().session;
    const Time deadline = session.clock().now() + session.timeout();
    if (done < released && session.clock().now() >= tell_at) PIF_TRY(ask(session));
    while (done >= released && !has_ended) {
      PIF_TRY(ask(session));
      if (done >= released && !has_ended && session.clock().now() >= deadline)
        return fail(Code::kTimeout,
                    fmt::format("the controller has released {} rounds, and none for {} s", released,
                                std::chrono::duration_cast<std::chrono::seconds>(session.timeout()).count()));
    }
    return {};
  }
  Status ask(Session& session) {
    proto::AwaitRounds request;
    request.set_group(group);
    request.set_member(index);
    request.set_done(done);
    PIF_TRY_VALUE(const proto::AwaitRoundsReply reply, session.call(std::move(request)));
    released = std::max(released, reply.released());
    has_ended = reply.ended();
    tell_at = session.clock().now() + kTellEvery;
    return {};
  }
  Status check_reads(bool fixed) const {
    if (writes) return fail(Code::kInvalid, "this file is being written");
    if (file.format().is_fixed() == fixed) return {};
    return fail(Code::kInvalid, fmt::format("the file's records have {} length", fixed ? "no fixed" : "a fixed"));
  }
  // Of the next rounds, at most so many: their records, which are `members` apart.
  Result<File::Pieces> pieces_of(std::uint64_t rounds) const {
    const std::uint64_t length = file.format().record_length;
    PIF_ASSERT(index < members && rounds > 0 && rounds <= released - done, index, members, rounds, released, done);
    File::Pieces pieces;
    PIF_TRY_VALUE(pieces.file, patterns::member_of(index, members, length, position + done * members));
    pieces.memory = patterns::range(0, rounds * length);
    return pieces;
  }
};

ParallelMember::ParallelMember(std::unique_ptr<State> state) : state_(std::move(state)) {}
ParallelMember::ParallelMember(ParallelMember&&) noexcept = default;
ParallelMember& ParallelMember::operator=(ParallelMember&&) noexcept = default;
ParallelMember::~ParallelMember() = default;

std::uint32_t ParallelMember::index() const { return state_->index; }
std::uint32_t ParallelMember::members() const { return state_->members; }
const Format& ParallelMember::format() const { return state_->file.format(); }

Result<ParallelMember> ParallelMember::join(Client& client, std::string_view token,
                                            std::optional<std::uint32_t> index) {
  PIF_TRY_VALUE(const Tokens tokens, parted(token));
  proto::ParallelJoinReply reply;
  PIF_TRY(in_use(client.session().user(), [&]() -> Status {
    proto::ParallelJoin request;
    request.set_token(std::string(tokens.group));
    if (index) request.set_member(*index);
    PIF_TRY_VALUE(reply, client.session().call(std::move(request)));
    return {};
  }));
  if (reply.members() == 0 || reply.member() >= reply.members())
    return fail(Code::kInternal, fmt::format("the server says member {} of {}", reply.member(), reply.members()));
  auto state = std::make_unique<State>();
  state->client = &client;
  state->group = reply.group();
  state->index = reply.member();
  state->members = reply.members();
  state->position = reply.position();
  state->writes = reply.writes();
  PIF_TRY_VALUE(state->file, reply.writes() ? client.join(tokens.share) : client.open_by_id(reply.file()));
  return ParallelMember(std::move(state));
}

Result<std::optional<ParallelMember::Moved>> ParallelMember::read(std::span<std::byte> out) {
  State& state = *state_;
  PIF_TRY(state.check_reads(true));
  const std::uint64_t length = state.file.format().record_length;
  if (out.size() < length) return fail(Code::kInvalid, fmt::format("{} bytes for a record of {}", out.size(), length));
  while (true) {
    PIF_TRY(in_use(state.file.state().session->user(), [&] { return state.await(); }));
    if (state.done >= state.released) return std::optional<Moved>();
    const std::uint64_t rounds = std::min<std::uint64_t>(state.released - state.done, out.size() / length);
    PIF_TRY_VALUE(const File::Pieces pieces, state.pieces_of(rounds));
    PIF_TRY_VALUE(const std::uint64_t bytes, state.file.read_pieces(pieces, out));
    state.done += rounds;
    if (bytes > 0) return std::optional(Moved{(bytes + length - 1) / length, bytes});
  }
}

Result<std::optional<RecordBatch>> ParallelMember::read_batch(std::size_t bytes_max) {
  State& state = *state_;
  PIF_TRY(state.check_reads(false));
  PIF_TRY_VALUE(const FileLength length, state.file.file_length());
  RecordBatch batch;
  while (batch.lengths.empty()) {
    PIF_TRY(in_use(state.file.state().session->user(), [&] { return state.await(); }));
    if (state.done >= state.released) return std::optional<RecordBatch>();
    while (state.done < state.released && batch.lengths.size() < kBatchRecordsMax && batch.data.size() < bytes_max) {
      const RecordNumber record = state.record(state.done);
      if (record < length.records) {
        PIF_TRY_VALUE(const RecordBatch one, state.file.read_batch_at(record, 1, 0));
        if (!batch.lengths.empty() && one.data.size() > bytes_max - batch.data.size()) break;
        batch.lengths.insert(batch.lengths.end(), one.lengths.begin(), one.lengths.end());
        batch.data.insert(batch.data.end(), one.data.begin(), one.data.end());
      }
      ++state.done;
    }
  }
  return std::optional(std::move(batch));
}

Status ParallelMember::write(std::span<const std::byte> in) {
  State& state = *state_;
  const std::uint64_t length = state.file.format().record_length;
  if (!state.writes) return fail(Code::kInvalid, "this file is open for reading");
  if (in.size() % length != 0)
    return fail(Code::kInvalid, fmt::format("{} bytes are no whole records of {}", in.size(), length));
  while (!in.empty()) {
    PIF_TRY(in_use(state.file.state().session->user(), [&] { return state.await(); }));
    if (state.done >= state.released)
      return fail(Code::kEndOfFile,
                  fmt::format("the rounds have ended: {} records were not written", in.size() / length));
    const std::uint64_t rounds = std::min<std::uint64_t>(state.released - state.done, in.size() / length);
    PIF_TRY_VALUE(const File::Pieces pieces, state.pieces_of(rounds));
    PIF_TRY(state.file.write_pieces(pieces, in.first(rounds * length)));
    in = in.subspan(rounds * length);
    state.done += rounds;
    // The controller waits for it.
    PIF_TRY(in_use(state.file.state().session->user(), [&] { return state.ask(*state.file.state().session); }));
  }
  return {};
}

Status ParallelMember::done() { return state_->file.done(); }

}  // namespace pif
