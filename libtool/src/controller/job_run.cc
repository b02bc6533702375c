#include "controller/job_run.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/tool/worker.h"
#include "pif/wire/convert.h"

namespace pif::tool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFullTurn = milliseconds(1);     // how soon a taker is asked again that was full
constexpr Duration kHold = seconds(5);              // of a JobWait without news; an LFS may hold it for less
constexpr Duration kWaitTimeout = 2 * kSilenceMax;  // of a JobWait: an LFS that is silent is given up sooner
constexpr Duration kSpawnTimeout = seconds(15);
constexpr Duration kKillTimeout = seconds(1);
constexpr std::size_t kReportBytesMax =
    kJobResultBytesMax + (3u << 20);              // of a worker: its result, and what libtool adds
constexpr std::size_t kLineBytesMax = 64u << 10;  // of what a worker writes; longer ones come in pieces

std::string signal_name(int number) {
  const char* const text = strsignal(number);
  return text != nullptr ? fmt::format("signal {} ({})", number, text) : fmt::format("signal {}", number);
}

// "lfs1", or "lfs1 at h2" where there are several hosts.
std::string place_of(const proto::NodeInfo& node) {
  return node.host().empty() ? node.name() : fmt::format("{} at {}", node.name(), node.host());
}

// The last line that says something.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const auto line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

Status pump(client::Session& session, const ControllerOptions& options, Duration turn) {
  if (options.is_cancelled && options.is_cancelled()) return fail(Code::kCancelled, "interrupted");
  session.keep_alive();
  return session.caller().pump(session.clock().now() + turn);
}

JobRun::JobRun(client::Session& session, const ControllerOptions& options, std::vector<proto::NodeInfo> nodes,
               std::function<Status()> keep_files, StreamTaker taker, std::vector<FolderGrant> grants)
    : session_(session),
      options_(options),
      grants_(std::move(grants)),
      keep_files_(std::move(keep_files)),
      id_(session.entropy().next()),
      ledger_(nodes.size()),
      taker_(std::move(taker)),
      merge_(nodes.size()) {
  for (auto& info : nodes) {
    const auto rank = static_cast<std::uint32_t>(nodes_.size());
    auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& h) { return h.info.id() == info.id(); });
    if (host == hosts_.end()) {
      host = hosts_.emplace(hosts_.end());
      host->info = info;
    }
    host->ranks.push_back(rank);
    Node node;
    node.info = std::move(info);
    nodes_.push_back(std::move(node));
  }
}

// ---- starting -----------------------------------------------------------------------------------------------------

Status JobRun::start(const std::string& description) {
  PIF_ASSERT(spawning_.empty() && !is_described_, spawning_.size());  // once
  std::vector<proto::NodeInfo> infos;
  for (const auto& host : hosts_) infos.push_back(host.info);
  session_.prepare(infos);
  Status started;
  for (std::size_t at = 0; started && !is_described_; at += kJobPartBytes) {
    started = start_tree(description, at);
    is_described_ = at + kJobPartBytes >= description.size();
    // Asked from the start: an LFS keeps a job whose workers have not come yet.
    for (auto& host : hosts_) {
      if (started && at == 0) started = ask(host);
    }
    if (started) started = finish_spawning();
  }
  if (started && !lacking_.empty()) started = bring_program(std::exchange(lacking_, {}));
  if (!started) return end_everywhere(std::move(started.error()));
  return {};
}

proto::Spawn JobRun::spawn_of(std::uint32_t rank) const {
  proto::Spawn spawn;
  spawn.set_job(id_);
  spawn.set_program(options_.program);
  spawn.set_build(options_.build);
  for (const auto& argument : options_.arguments) spawn.add_arguments(argument);
  spawn.set_rank(rank);
  spawn.set_fan_out(options_.fan_out);
  spawn.set_working_folder(options_.working_folder);
  for (const FolderGrant& grant : grants_) {
    proto::FolderGrant& given = *spawn.add_grants();
    given.set_folder(grant.folder);
    given.set_may_write(grant.may_write);
  }
  return spawn;
}

Status JobRun::finish_spawning() {
  while (!spawning_.empty()) PIF_TRY(turn());
  return {};
}

Status JobRun::start_tree(const std::string& description, std::size_t at) {
  const std::size_t count = nodes_.size();
  const std::size_t parts = std::min<std::size_t>(options_.fan_out, count);
  PIF_ASSERT(parts > 0 && at <= description.size(), options_.fan_out, count, at);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = part * count / parts;
    net::Packet request;
    proto::Spawn& spawn = *request.envelope.mutable_spawn();
    spawn = spawn_of(static_cast<std::uint32_t>(first));
    spawn.set_description(description.substr(at, kJobPartBytes));
    spawn.set_description_at(at);
    spawn.set_description_size(description.size());
    for (std::size_t i = first + 1; i < (part + 1) * count / parts; ++i) {
      proto::SpawnNode& node = *spawn.add_subtree();
      node.set_rank(static_cast<std::uint32_t>(i));
      *node.mutable_node() = brief(nodes_[i].info);
    }
    request.envelope.set_timeout_ms(static_cast<std::uint32_t>(kSpawnTimeout / milliseconds(1)));
    PIF_TRY(send(spawning_, nodes_[first].info, std::move(request)));
  }
  return {};
}

Status JobRun::bring_program(const std::vector<std::uint32_t>& ranks) {
  PIF_ASSERT(!ranks.empty());
  PIF_TRY_VALUE(const std::uint64_t size, program_size(ranks.front()));
  std::vector<std::byte> part(kBulkBytes);
  for (std::uint64_t at = 0; at < size; at += part.size()) {
    PIF_TRY_VALUE(const std::size_t got, options_.image->read(at, part));
    PIF_ASSERT(got <= part.size(), got);
    if (got < std::min<std::uint64_t>(part.size(), size - at))
      return fail(Code::kIo, fmt::format("{} became shorter while it was read", options_.program));
    for (const Host& host : hosts_) {
      const auto lacks = std::find_first_of(ranks.begin(), ranks.end(), host.ranks.begin(), host.ranks.end());
      if (lacks != ranks.end()) PIF_TRY(send_program(*lacks, at, size, std::span(part).first(got)));
    }
    PIF_TRY(finish_spawning());
  }
  for (const std::uint32_t rank : ranks) PIF_TRY(send_program(rank, size, size, {}));
  PIF_TRY(finish_spawning());
  if (lacking_.empty()) return {};
  return worker_failed(lacking_.front(), {Code::kUnavailable, "the program that was brought is gone again", {}});
}

Result<std::uint64_t> JobRun::program_size(std::uint32_t rank) const {
  const auto cannot = [&](const std::string& why) {
    return worker_failed(rank, {Code::kUnsupported,
                                fmt::format("{} is not there, or is another build, and {}: put the same program there",
                                            options_.program, why),
                                {}});
  };
  if (options_.image == nullptr) return cannot("cannot be read here");
  PIF_TRY_VALUE(const std::uint64_t size, options_.image->size());
  if (size > kProgramBytesMax) {
    return cannot(fmt::format("has {} MiB, where programs of at most {} MiB are brought", (size + (1u << 20) - 1) >> 20,
                              kProgramBytesMax >> 20));
  }
  return size;
}

Status JobRun::send_program(std::uint32_t rank, std::uint64_t at, std::uint64_t size,
                            std::span<const std::byte> bytes) {
  PIF_ASSERT(at + bytes.size() <= size, at, bytes.size(), size);
  proto::Spawn spawn = spawn_of(rank);
  spawn.set_program_at(at);
  spawn.set_program_size(size);
  net::Packet request = net::packet_of(std::move(spawn));
  request.body = net::Buffer::copy_of(bytes);
  return send(spawning_, nodes_[rank].info, std::move(request));
}

// LFSs know all of these requests when they come again. Those with a body, parts of a program, are not kept for that.
Status JobRun::send(std::vector<Part>& parts, const proto::NodeInfo& node, net::Packet request) {
  Part part;
  part.node = node;
  if (request.body.empty()) part.again = request.envelope;
  PIF_TRY_VALUE(part.call, session_.start_node(node, std::move(request), kSpawnTimeout));
  parts.push_back(std::move(part));
  return {};
}

Status JobRun::ask(Host& host) {
  PIF_ASSERT(!host.waiting.has_value());
  proto::JobWait wait;
  wait.set_job(id_);
  wait.set_hold_ms(static_cast<std::uint32_t>(kHold / milliseconds(1)));
  wait.set_seen(host.seen);
  wait.set_started(is_described_ && spawning_.empty());
  host.lacked_room = !has_room(host);
  for (const std::uint32_t rank : host.ranks) {
    if (!taker_) break;
    auto& room = *wait.add_rooms();
    room.set_rank(rank);
    room.set_at(merge_.come(rank));
    room.set_bytes(merge_.room(rank));
  }
  PIF_TRY_VALUE(host.waiting, session_.start_node(host.info, net::packet_of(std::move(wait)), kWaitTimeout));
  return {};
}

// ---- waiting ------------------------------------------------------------------------------------------------------

Result<std::vector<job::WorkerEnd>> JobRun::wait() {
  while (!is_over() || is_full_) {
    if (auto done = turn(); !done) return end_everywhere(std::move(done.error()));
    if (!had_enough_) continue;
    (void)end_everywhere({Code::kCancelled, "enough was seen", {}});
    return std::vector<job::WorkerEnd>();
  }
  std::vector<job::WorkerEnd> ends;
  for (const auto& part : meeting_) session_.caller().forget(part.call);  // its worker is over, so it came
  for (const auto& host : hosts_) {
    if (host.waiting) session_.caller().forget(*host.waiting);
  }
  for (auto& node : nodes_) {
    PIF_ASSERT(node.end.has_value() && node.exited, ends.size());
    ends.push_back(std::move(*node.end));
  }
  return ends;
}

bool JobRun::is_over(const Host& host) const {
  return std::all_of(host.ranks.begin(), host.ranks.end(), [this](std::uint32_t rank) { return is_over(rank); });
}

bool JobRun::is_over() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [this](const Host& host) { return is_over(host); });
}

Status JobRun::turn() {
  PIF_TRY(pump(session_, options_, is_full_ ? kFullTurn : kTurn));
  PIF_TRY(keep_files_());
  PIF_TRY(take_answers(spawning_));
  PIF_TRY(take_answers(meeting_));
  PIF_TRY(take_waits());
  PIF_TRY(take_streams());
  return offer_room();
}

bool JobRun::has_room(const Host& host) const {
  const auto has = [this](std::uint32_t rank) { return merge_.room(rank) > 0; };
  return std::all_of(host.ranks.begin(), host.ranks.end(), has);
}

// The LFS has sent nothing of a stream for which there was no room, and keeps all else until it is seen.
Status JobRun::offer_room() {
  for (auto& host : hosts_) {
    if (!taker_ || !host.waiting || !host.lacked_room || !has_room(host)) continue;
    session_.caller().forget(*host.waiting);
    host.waiting.reset();
    PIF_TRY(ask(host));
  }
  return {};
}

Status JobRun::take_streams() {
  while (taker_ && !had_enough_) {
    is_full_ = taker_.is_full && taker_.is_full();
    if (is_full_) return {};
    PIF_TRY_VALUE(const auto next, merge_.next());
    if (!next) return taker_.pause ? taker_.pause() : Status();
    PIF_TRY_VALUE(const bool goes_on, taker_.take(next->key, next->bytes));
    had_enough_ = !goes_on;
  }
  return {};
}

// Its report says how much that is.
Status JobRun::end_stream(std::uint32_t rank) {
  Node& node = nodes_[rank];
  if (!node.end || node.is_streamed || merge_.come(rank) < node.end->bytes_streamed()) return {};
  node.is_streamed = true;
  return merge_.end(rank);
}

Status JobRun::take_answers(std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size();) {
    if (!session_.caller().is_done(parts[i].call)) {
      ++i;
      continue;
    }
    auto answer = session_.caller().wait(parts[i].call);
    Part part = std::move(parts[i]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    if (!answer) {
      PIF_TRY(send_again(parts, std::move(part), std::move(answer.error())));
      continue;
    }
    for (const std::uint32_t rank : answer->envelope.spawn_reply().lacking()) {
      if (rank >= nodes_.size())
        return fail(Code::kInternal, fmt::format("worker {} lacks its program", rank), part.node.name());
      lacking_.push_back(rank);
    }
  }
  return {};
}

Status JobRun::take_waits() {
  for (auto& host : hosts_) {
    if (!host.waiting || !session_.caller().is_done(*host.waiting)) continue;
    auto answer = session_.caller().wait(*host.waiting);
    host.waiting.reset();
    if (!answer) {
      PIF_TRY(ask_again(host, answer.error()));
      continue;
    }
    host.is_asked_again = false;
    for (const auto& event : answer->envelope.job_wait_reply().events()) {
      if (event.number() <= host.seen) continue;
      PIF_TRY(take_event(event));
      host.seen = std::max(host.seen, event.number());
    }
    for (const auto& part : answer->envelope.job_wait_reply().parts()) {
      const bool is_next = part.rank() < nodes_.size() && part.at() == merge_.come(part.rank());
      if (!is_next) return fail(Code::kInternal, "a part of a stream that was not asked for", host.info.name());
      PIF_TRY(merge_.add(part.rank(), part.bytes()));
    }
    for (const std::uint32_t rank : host.ranks) PIF_TRY(end_stream(rank));
    if (!is_over(host)) PIF_TRY(ask(host));
  }
  return {};
}

// Over ZeroMQ an answer may be lost with its connection, while the LFS keeps the job (kJobLease) and whatever was not
// seen. A Unix socket loses nothing; its end is the end of the job.
bool JobRun::may_be_there(const proto::NodeInfo& node, const Error& error) {
  if (!access::is_lost(error.code) || !error.node.empty()) return false;
  const auto link = session_.link(node);
  return link && !link->passes_descriptors;
}

Status JobRun::send_again(std::vector<Part>& parts, Part part, Error error) {
  if (part.again && may_be_there(part.node, error)) {
    net::Packet request;
    request.envelope = std::move(*part.again);
    PIF_TRY(send(parts, part.node, std::move(request)));
    parts.back().again.reset();
    return {};
  }
  if (error.node.empty()) error.node = part.node.name();
  return fail(std::move(error));
}

Status JobRun::ask_again(Host& host, const Error& error) {
  const bool is_first = !std::exchange(host.is_asked_again, true);
  if (is_first && may_be_there(host.info, error) && ask(host)) return {};
  return fail(error.code, fmt::format("lost {}, where a worker of this job ran: {}", place_of(host.info), error.text),
              host.info.name());
}

Status JobRun::take_event(const proto::JobWaitReply::Event& event) {
  using Event = proto::JobWaitReply::Event;
  if (event.rank() >= nodes_.size()) return fail(Code::kInternal, fmt::format("an event of worker {}", event.rank()));
  switch (event.what_case()) {
    case Event::kProgress: return take_progress(event.rank(), event.progress());
    case Event::kResult: return take_result(event.rank(), event);
    case Event::kMeet: return take_meet(event.rank(), event.meet());
    case Event::kSaid: take_said(event.rank(), event.said()); return {};
    case Event::kExited:
    case Event::kKilled: return take_exit(event.rank(), event);
    case Event::WHAT_NOT_SET: return {};
  }
  return {};
}

Status JobRun::take_result(std::uint32_t rank, const proto::JobWaitReply::Event& event) {
  std::string& report = nodes_[rank].report;
  if (nodes_[rank].end || report.size() + event.result().size() > kReportBytesMax) {
    return worker_failed(rank, {Code::kTooLarge, fmt::format("it reports more than {} bytes", kReportBytesMax), {}});
  }
  report += event.result();
  if (event.more()) return {};
  job::WorkerEnd end;
  const bool is_read = end.ParseFromString(report) && ledger_.fits(end.letters());
  report = {};
  if (!is_read) {
    return worker_failed(rank, {Code::kVersion, "its report cannot be read", {}});
  }
  if (end.has_error()) return worker_failed(rank, wire::error_of(end.error()));
  ledger_.take_sent(rank, end.letters());
  nodes_[rank].end = std::move(end);
  return {};
}

// When all workers have given something, all get it.
Status JobRun::take_meet(std::uint32_t rank, std::string value) {
  nodes_[rank].meet = std::move(value);
  if (!std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.meet.has_value(); })) return {};
  proto::JobMeet all;
  all.set_job(id_);
  for (const Node& node : nodes_) all.add_values(*node.meet);
  for (const Host& host : hosts_) PIF_TRY(send(meeting_, host.info, net::packet_of(all)));
  return {};
}

void JobRun::take_said(std::uint32_t rank, const std::string& words) {
  std::string& said = nodes_[rank].said;
  said += words;
  std::string_view rest = said;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    show_line(rank, rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  if (rest.size() > kLineBytesMax) {
    show_line(rank, rest);
    rest = {};
  }
  said.erase(0, said.size() - rest.size());
}

void JobRun::show_line(std::uint32_t rank, std::string_view line) const {
  if (options_.on_words) options_.on_words(rank, place_of(nodes_[rank].info), line);
}

Status JobRun::take_exit(std::uint32_t rank, const proto::JobWaitReply::Event& event) {
  Node& node = nodes_[rank];
  node.exited = true;
  const bool killed = event.what_case() == proto::JobWaitReply::Event::kKilled;
  if (const std::string rest = std::exchange(node.said, {}); !rest.empty()) show_line(rank, rest);
  if (!killed && event.exited() == 0 && node.end) return {};
  std::string how =
      killed ? "died of " + signal_name(event.killed()) : fmt::format("ended with exit code {}", event.exited());
  if (!killed && event.exited() == 0) how = "ended without a report";
  if (const std::string words = last_line(event.text()); !words.empty()) how += ": " + words;
  return worker_failed(rank, {Code::kCancelled, std::move(how), {}});
}

Status JobRun::take_progress(std::uint32_t rank, const std::string& bytes) {
  job::WorkerStatus status;
  if (!status.ParseFromString(bytes) || !ledger_.fits(status.letters()))
    return worker_failed(rank, {Code::kVersion, "what it says of its progress cannot be read", {}});
  if (status.has_letters()) return take_letters(rank, status.letters());
  nodes_[rank].status = std::move(status);
  if (!options_.on_progress) return {};
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const auto& node : nodes_) {
    done += node.status.bytes_done();
    total += node.status.bytes_total();
  }
  options_.on_progress(done, total);
  return {};
}

Status JobRun::take_letters(std::uint32_t rank, const job::LetterCounts& counts) {
  const auto lost = ledger_.take_wait(rank, counts);
  if (!lost) return {};
  PIF_ASSERT(lost->from < nodes_.size() && lost->count > 0, lost->from, lost->count);
  const std::string how_many = lost->count == 1 ? "a message" : fmt::format("{} messages", lost->count);
  return worker_failed(
      rank, {Code::kUnavailable,
             fmt::format("{} of worker {} on {} did not come in {} s: lost when their connection broke, or the way is "
                         "blocked (worker-ports of pif.toml must be open between hosts); run the tool again",
                         how_many, lost->from, place_of(nodes_[lost->from].info),
                         std::chrono::duration_cast<seconds>(kLetterLost).count()),
             {}});
}

tl::unexpected<Error> JobRun::worker_failed(std::uint32_t rank, Error error) const {
  PIF_ASSERT(rank < nodes_.size(), rank, nodes_.size());
  const std::string& name = nodes_[rank].info.name();
  const std::string by = error.node.empty() || error.node == name ? "" : error.node + ": ";
  // To a worker no command line is wrong, but what it reads: whoever started the tool did that rightly.
  const Code code = error.code == Code::kInvalid ? Code::kUnsupported : error.code;
  return fail(code, fmt::format("worker {} on {} failed: {}{}", rank, place_of(nodes_[rank].info), by, error.text));
}

// ---- ending -------------------------------------------------------------------------------------------------------

// The LFS that was lost is asked, too, for it may be there; but its answer is not waited for.
tl::unexpected<Error> JobRun::end_everywhere(Error error) {
  for (auto* const parts : {&spawning_, &meeting_}) {
    for (const auto& part : *parts) session_.caller().forget(part.call);
    parts->clear();
  }
  std::vector<net::CallId> kills;
  for (auto& host : hosts_) {
    if (host.waiting) session_.caller().forget(*host.waiting);
    host.waiting.reset();
    proto::JobKill kill;
    kill.set_job(id_);
    auto call = session_.start_node(host.info, net::packet_of(std::move(kill)), kKillTimeout);
    if (!call) continue;  // an LFS that cannot be reached ends the job itself
    const bool is_lost = access::is_lost(error.code) && error.node == host.info.name();
    if (is_lost)
      session_.caller().forget(*call);
    else
      kills.push_back(*call);
  }
  for (const net::CallId call : kills) (void)session_.caller().wait(call).has_value();
  return fail(std::move(error));
}

}  // namespace pif::tool
