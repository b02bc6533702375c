#include "pif/tool/worker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/base/limits.h"
#include "pif/machine/limits.h"
#include "pif/tool/threads.h"
#include "pif/wire/convert.h"
#include "worker/debugger.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

using std::chrono::seconds;

constexpr Duration kLocalTimeout = seconds(30);  // of the worker's requests to its LFS

// All workers of a job, and of others, share their controller's session: each counts its requests from elsewhere, as
// docs/PROTOCOL.md "Requests that are sent again" wants it.
net::CallId first_request(std::uint64_t job, std::uint32_t rank) {
  constexpr unsigned kCountBits = 24;
  const std::array<std::uint64_t, 2> sender = {job, rank};
  return (hash_bytes(std::as_bytes(std::span(sender))) >> kCountBits | 1) << kCountBits;
}

}  // namespace

// ---- the job ------------------------------------------------------------------------------------------------------

Worker::Impl::Impl(WorkerWorld w)
    : world(std::move(w)),
      caller(world.messenger, 1),
      links(world.messenger, caller.calls(), {net::Route::kUnix, "worker", kLocalTimeout}) {}

Status Worker::Impl::start() {
  PIF_ASSERT(inputs.empty() && outputs.empty() && !mail);  // once
  PIF_TRY_VALUE(lfs, world.messenger.adopt(std::move(world.connection)));
  std::string text;
  for (std::uint64_t size = UINT64_MAX; text.size() < size;) {
    proto::WorkerStart ask;
    ask.set_at(text.size());
    PIF_TRY_VALUE(const proto::WorkerStartReply start, caller.call(lfs, std::move(ask), kLocalTimeout, "the LFS"));
    job_id = start.job();
    rank = start.rank();
    node_name = start.node().name();
    size = start.description_size();
    if (start.description().empty()) break;
    text += start.description();
  }
  if (!description.ParseFromString(text) || description.version() != kJobVersion ||
      rank >= static_cast<std::uint32_t>(description.nodes_size()) ||
      description.stands_for_size() != description.nodes_size() ||
      description.other_stand_for_size() != description.other_nodes_size()) {
    return fail(Code::kVersion,
                "the controller's description of the job cannot be read: is another version of the tool "
                "installed on this node?",
                node_name);
  }
  links.set_credential(description.credential());
  links.count_from(first_request(job_id, rank));
  links.adopt(description.nodes(static_cast<int>(rank)).id(), node_name, lfs, kBulkBytes);
  if (description.traced()) trace = std::make_unique<Trace>(world.messenger.clock());
  inputs.resize(static_cast<std::size_t>(description.inputs_size()));
  outputs.resize(static_cast<std::size_t>(description.outputs_size()));
  return keep_files();
}

Status Worker::Impl::keep_files() {
  for (const auto& file : description.files()) {
    if (!world.keep_file) return fail(Code::kUnsupported, "no file can be brought to this worker", node_name);
    PIF_TRY(world.keep_file(file.name(), file.content()));
  }
  description.clear_files();
  return {};
}

Result<std::vector<std::string>> Worker::Impl::meet(const std::string& value, Duration patience) {
  const Time deadline = caller.messenger().clock().now() + patience;
  while (caller.messenger().clock().now() < deadline) {
    proto::WorkerMeet request;
    request.set_value(value);
    PIF_TRY_VALUE(const proto::WorkerMeetReply answer, caller.call(lfs, std::move(request), kLocalTimeout, node_name));
    if (!answer.met()) continue;
    const auto& values = answer.values();
    if (values.size() != description.nodes_size())
      return fail(Code::kInternal, "word of the other workers is not complete", node_name);
    return std::vector<std::string>(values.begin(), values.end());
  }
  return fail(Code::kTimeout, "the other workers did not say where they listen", node_name);
}

std::optional<LfsIndex> Worker::Impl::index_of(const access::FileParts& parts) const {
  const std::uint32_t here = description.stands_for(static_cast<int>(rank));
  const auto& nodes = parts.file_layout.nodes();
  const auto found = std::find(nodes.begin(), nodes.end(), here);
  if (found == nodes.end()) return std::nullopt;
  return static_cast<LfsIndex>(found - nodes.begin());
}

// ---- components ---------------------------------------------------------------------------------------------------

Status Worker::Impl::run(access::Requests& requests) {
  while (true) {
    PIF_TRY(requests.step());
    if (requests.idle()) return {};
    PIF_TRY(caller.pump(requests.next_try()));  // every call ends by its deadline
  }
}

Status Worker::Impl::attach(Input& input) {
  // An LFS to which the layout gives no rows has no component.
  if (!input.is_here() || input.layout().rows(input.index(), input.file_length().records) == 0) return {};
  access::Requests requests(links, input.grant_);
  input.access_->open_reader(requests);
  PIF_TRY(run(requests));
  if (!input.access_->has_reader()) {  // it may be had from its parity, but not by descriptor
    return fail(Code::kUnavailable,
                fmt::format("{}: {} does not have its part of the file at present: try again in a moment (pif status "
                            "shows whether it is coming back)",
                            input.file().path, node_name),
                node_name);
  }
  return input.open();
}

Status Worker::Impl::attach(Output& output) {
  PIF_ASSERT(!output.is_made());
  if (!output.is_here() || !output.has_component(output.index())) return {};
  access::Requests requests(links, output.grant_);
  output.access_->open_writer(requests);
  PIF_TRY(run(requests));
  output.sink_ = std::make_unique<access::RowSink>(output.file(), output.index(), output.files());
  return {};
}

template <typename File>
Result<File*> Worker::Impl::attached(std::unique_ptr<File>& slot, const job::JobFile& file) {
  if (!slot) {
    PIF_TRY_VALUE(access::FileParts parts, parts_of(file, description));
    const auto index = index_of(parts);
    std::unique_ptr<File> made(new File(world.storage, std::move(parts), index));
    made->trace_ = trace.get();
    PIF_TRY(attach(*made));
    slot = std::move(made);
  }
  return slot.get();
}

// ---- the end ------------------------------------------------------------------------------------------------------

Status Worker::Impl::end_outputs(job::WorkerEnd& end) {
  PIF_ASSERT(outputs.size() == static_cast<std::size_t>(description.outputs_size()), outputs.size());
  for (const auto& output : outputs) {
    job::ComponentEnd& component = *end.add_outputs();
    if (!output || !output->is_made()) continue;
    PIF_TRY_VALUE(const component::Tail tail, output->finish());
    component.set_here(true);
    component.set_rows(tail.rows);
    component.set_bytes(tail.bytes);
    component.set_data_tail_sum(tail.data_sum);
    component.set_index_tail_sum(tail.index_sum);
    end.set_bytes_written(end.bytes_written() + tail.bytes);
    if (output->cloned_) end.set_bytes_cloned(end.bytes_cloned() + tail.bytes);
  }
  return {};
}

void Worker::Impl::send_status(const job::WorkerStatus& status) {
  net::Packet packet;
  packet.envelope.set_version(kProtocolVersion);
  packet.envelope.mutable_worker_progress()->set_progress(status.SerializeAsString());
  (void)world.messenger.send(lfs, std::move(packet));  // an LFS that is not there ends the worker
}

Status Worker::Impl::stream(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kJobPartBytes);
    proto::WorkerStream request;
    request.set_bytes(std::string(part));
    PIF_TRY_VALUE(const proto::WorkerStreamReply answer,
                  caller.call(lfs, std::move(request), kLocalTimeout, node_name));
    if (!answer.taken()) continue;  // an LFS that is not there ends the worker, and a controller that is gone
    bytes.remove_prefix(part.size());
    bytes_streamed += part.size();
  }
  return {};
}

Status Worker::Impl::report(Status outcome, bool& is_reported) {
  job::WorkerEnd end;
  Status ended = std::move(outcome);
  if (ended && result.size() > kJobResultBytesMax) {
    ended = fail(Code::kTooLarge, fmt::format("a worker's result of {} bytes; at most {} are allowed", result.size(),
                                              kJobResultBytesMax));
  }
  if (const int error = lost->load(); error != 0) {  // and whatever else went wrong came of that
    ended = fail(code_from_errno(error),
                 fmt::format("what was written to a scratch file did not reach the disk: {}", std::strerror(error)),
                 node_name);
  }
  if (ended) ended = end_outputs(end);
  if (!ended) *end.mutable_error() = wire::proto_of(ended.error(), node_name);
  for (const auto& input : inputs) {
    if (input) bytes_read += input->bytes_read();
  }
  end.set_bytes_read(bytes_read);
  end.set_bytes_sent(bytes_sent);
  end.set_bytes_streamed(bytes_streamed);
  end.set_bytes_messaged(bytes_messaged);
  if (ended && trace) trace->add_to(end);
  if (ended) end.set_value(std::move(result));
  if (ended && mail) *end.mutable_letters() = mail->letters();
  inputs.clear();
  outputs.clear();
  const std::string text = end.SerializeAsString();
  std::size_t at = 0;
  do {
    proto::WorkerResult part;
    part.set_result(text.substr(at, kJobPartBytes));
    at += kJobPartBytes;
    part.set_more(at < text.size());
    PIF_TRY(caller.call(lfs, std::move(part), kLocalTimeout, node_name));
  } while (at < text.size());
  is_reported = true;
  return ended;
}

Worker::Outcome Worker::run(WorkerWorld world, const WorkerFunction& work) {
  Worker worker(std::make_unique<Impl>(std::move(world)));
  if (Status started = worker.impl_->start(); !started) return {std::move(started), false};
  const job::JobDescription& description = worker.impl_->description;
  if (description.has_debugged() && description.debugged() == worker.rank())
    stop_for_debugger(fmt::format("worker {} on {}", worker.rank(), worker.node()));
  Status ended = work(worker);
  Outcome outcome;
  outcome.status = worker.impl_->report(std::move(ended), outcome.is_reported);
  return outcome;
}

bool Worker::is_debugged() const { return impl_->description.has_debugged(); }

void Worker::begin_phase(const std::string& name) {
  if (impl_->trace) impl_->trace->begin_phase(name);
}

// ---- what a tool asks ---------------------------------------------------------------------------------------------

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::~Worker() = default;

std::uint32_t Worker::rank() const { return impl_->rank; }
std::uint32_t Worker::width() const { return static_cast<std::uint32_t>(impl_->description.nodes_size()); }
std::uint64_t Worker::job() const { return impl_->job_id; }
const std::string& Worker::node() const { return impl_->node_name; }
std::uint32_t Worker::node_id(std::uint32_t rank) const {
  PIF_ASSERT(rank < width(), rank, width());
  return impl_->description.stands_for(static_cast<int>(rank));
}
bool Worker::shares_machine() const { return all_are_near(impl_->description); }
unsigned Worker::Impl::usable_cores() {
  if (known_cores == 0) known_cores = world.has_threads ? machine::usable_cores() : 1;
  PIF_ASSERT(known_cores > 0);
  return known_cores;
}
std::vector<std::uint32_t> Worker::cores() const {
  if (const unsigned asked = impl_->description.threads(); asked != 0) {
    std::vector<std::uint32_t> all(std::min(asked, kThreadsMax));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (!impl_->world.has_threads) return {rank()};
  auto allowed = machine::allowed_cores();
  return allowed.empty() ? std::vector<std::uint32_t>{rank()} : allowed;
}
unsigned Worker::threads() const {
  const unsigned asked = impl_->description.threads();
  return std::min(share_of_threads(impl_->description, impl_->rank, asked != 0 ? asked : impl_->usable_cores()),
                  kThreadsMax);
}
std::future<Status> Worker::start(std::function<Status()> task) {
  const auto if_possible = std::launch::async | std::launch::deferred;
  return std::async(impl_->world.has_threads ? if_possible : std::launch::deferred, std::move(task));
}

Status Worker::run_tasks(std::size_t parts, const std::function<Status(std::size_t)>& f) {
  std::vector<std::future<Status>> others;
  for (std::size_t i = 1; i < parts; ++i) others.push_back(start([&f, i] { return f(i); }));
  Status first = parts > 0 ? f(0) : Status();
  for (auto& other : others) {
    Status ended = other.get();
    if (first) first = std::move(ended);
  }
  return first;
}

std::string_view Worker::value() const { return impl_->description.value(); }
std::size_t Worker::input_count() const { return impl_->inputs.size(); }
std::size_t Worker::output_count() const { return impl_->outputs.size(); }
Clock& Worker::clock() { return impl_->world.messenger.clock(); }
Entropy& Worker::entropy() { return impl_->world.entropy; }
void Worker::count_sent(std::uint64_t record_bytes) { impl_->bytes_sent += record_bytes; }

std::optional<std::uint32_t> Worker::rank_on(std::uint32_t node_id) const {
  for (int i = 0; i < impl_->description.stands_for_size(); ++i) {
    if (impl_->description.stands_for(i) == node_id) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> Worker::ranks_on(const Component& file) const {
  std::vector<std::uint32_t> ranks;
  const access::FileParts& parts = file.file();
  PIF_ASSERT(parts.nodes.size() == parts.layout.width(), parts.nodes.size(), parts.layout.width());
  for (std::size_t lfs = 0; lfs < parts.nodes.size(); ++lfs) {
    const auto rank = rank_on(parts.file_layout.nodes(static_cast<int>(lfs)));
    if (!rank) return fail(Code::kInternal, fmt::format("there is no worker on {}", parts.nodes[lfs].name()));
    ranks.push_back(*rank);
  }
  return ranks;
}

Result<Input*> Worker::input(std::size_t i) {
  if (i >= impl_->inputs.size()) return fail(Code::kInvalid, fmt::format("the job has no input {}", i));
  return impl_->attached(impl_->inputs[i], impl_->description.inputs(static_cast<int>(i)));
}

Result<Output*> Worker::output(std::size_t i) {
  if (i >= impl_->outputs.size()) return fail(Code::kInvalid, fmt::format("the job has no output {}", i));
  return impl_->attached(impl_->outputs[i], impl_->description.outputs(static_cast<int>(i)));
}

void Worker::close_input(std::size_t i) {
  PIF_ASSERT(i < impl_->inputs.size(), i, impl_->inputs.size());
  auto& slot = impl_->inputs[i];
  if (slot) impl_->bytes_read += slot->bytes_read();
  slot.reset();
}

Result<Scratch> Worker::scratch() {
  net::Packet request = net::packet_of(proto::WorkerScratch());
  PIF_TRY_VALUE(net::Packet answer,
                impl_->caller.call(impl_->lfs, std::move(request), kLocalTimeout, impl_->node_name));
  if (answer.handles.size() != 1) return fail(Code::kInternal, "the LFS passed no scratch file", impl_->node_name);
  return Scratch(std::move(answer.handles[0]), impl_->node_name, impl_->lost);
}

void Worker::progress(std::uint64_t bytes_done, std::uint64_t bytes_total) {
  const Time now = clock().now();
  if (now < impl_->next_progress) return;
  impl_->next_progress = now + kProgressEvery;
  job::WorkerStatus status;
  status.set_bytes_done(bytes_done);
  status.set_bytes_total(bytes_total);
  impl_->send_status(status);  // only for people's eyes
}

void Worker::set_result(std::string value) { impl_->result = std::move(value); }

}  // namespace pif::tool
