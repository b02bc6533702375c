#include "pif/tool/controller.h"

#include <algorithm>

#include <fmt/format.h>

#include "controller/job_run.h"
#include "controller/stand_ins.h"
#include "controller/worker_options.h"
#include "pif/access/sealing.h"
#include "pif/base/assert.h"
#include "pif/client/commit_many.h"
#include "pif/net/real_messenger.h"
#include "pif/tool/message.h"
#include "pif/wire/convert.h"
#include "report/trace_file.h"

namespace pif::tool {
namespace {

using std::chrono::minutes;

constexpr Duration kSealTimeout =
    minutes(30);                      // of syncing a component; an LFS that is silent meanwhile is found sooner
constexpr int kFarWorkersMax = 1024;  // where all of them listen fits one packet to each

struct Made {
  File file;
  std::optional<FileLength> file_length;
  std::optional<std::size_t> copy_of;    // an input
  std::vector<job::ComponentEnd> ends;   // by LFS of the file
  std::unique_ptr<access::Grant> grant;  // of `seals`, where LFSs stand in for others; null: the file's own
  std::unique_ptr<access::Sealing> sealing;
  std::unique_ptr<access::Requests> seals;  // for `sealing`
};

// Of one job, by rank.
struct Workers {
  std::vector<proto::NodeInfo> places;
  std::vector<std::uint32_t> stand_for;  // the nodes of layouts that they are there for

  std::size_t size() const { return places.size(); }
  void add(const proto::NodeInfo& node, const StandIns& stand_ins) {
    places.push_back(stand_ins.place_of(node));
    stand_for.push_back(node.id());
  }
};

// The file's right, with the nodes that requests go to.
std::unique_ptr<access::Grant> grant_with(const StandIns& stand_ins, File& file) {
  auto renew = [&file]() -> Result<access::Grant::Capability> {
    access::Grant& own = client::grant_of(file);
    PIF_TRY(own.renew());
    return access::Grant::Capability{own.capability(), own.parts().capability_until};
  };
  return std::make_unique<access::Grant>(stand_ins.with_places(client::parts_of(file)), std::move(renew));
}

// Whether the same LFSs keep parity of the same rows in both.
bool has_parity_of(const client::FileParts& copy, const client::FileParts& source) {
  const auto same_node = [](const proto::NodeInfo& a, const proto::NodeInfo& b) { return a.id() == b.id(); };
  return copy.is_protected() && source.is_protected() && copy.format == source.format && copy.layout == source.layout &&
         std::equal(copy.nodes.begin(), copy.nodes.end(), source.nodes.begin(), source.nodes.end(), same_node);
}

}  // namespace

struct Controller::Impl {
  Impl(Client& c, ControllerOptions o) : client(c), session(c.session()), options(std::move(o)) {}

  [[nodiscard]] Result<std::vector<proto::NodeInfo>> all_nodes();
  [[nodiscard]] Status choose_stand_ins();
  [[nodiscard]] Status keep_files();
  Error with_paths(Error error);
  [[nodiscard]] Result<Workers> workers_of(const Job& job);
  [[nodiscard]] Result<job::JobDescription> describe(const Job& job, const Workers& workers);
  [[nodiscard]] tl::unexpected<Error> not_started(Error error);
  [[nodiscard]] Status let_talk(job::JobDescription& description) const;
  [[nodiscard]] Status collect(const std::vector<job::WorkerEnd>& ends, const Workers& workers);
  [[nodiscard]] Result<FileLength> file_length_of(Made& made);
  [[nodiscard]] Status check_rows(Made& made, const FileLength& file_length);
  [[nodiscard]] Status start_seal(Made& made, const FileLength& file_length);
  [[nodiscard]] Status finish_seals();
  [[nodiscard]] Status seal(std::vector<FileLength>& file_lengths);

  Client& client;
  client::Session& session;
  ControllerOptions options;
  std::vector<File> taken;   // inputs that never get a name: they are removed with these
  std::vector<File> inputs;  // those are read by others
  std::vector<Made> outputs;
  StandIns stand_ins;  // of the present job
  Report report;
  TraceFile trace;
  std::optional<Result<Calibration>> calibration;  // as far as it was asked for
};

Controller::Controller(Client& client, ControllerOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}

Controller::~Controller() { abort(); }

Result<std::size_t> Controller::open(const std::string& path, Client::Mode mode) {
  const PhaseTimer timer(impl_->report, "create", impl_->session.clock());
  PIF_TRY_VALUE(File file, impl_->client.open(path, mode));
  if (file.is_placed()) {
    return fail(
        Code::kInvalid,
        fmt::format("{0} is a placed file, which has no records of its own: its forks have (`pif forks {0}`)", path));
  }
  impl_->inputs.push_back(std::move(file));
  return impl_->inputs.size() - 1;
}

Result<std::size_t> Controller::take(File created) {
  Impl& impl = *impl_;
  PIF_TRY_VALUE(const FileLength file_length, created.file_length());
  PIF_TRY(client::seal(created));
  PIF_TRY_VALUE(File input, client::read_sealed(created, file_length));
  impl.taken.push_back(std::move(created));
  impl.inputs.push_back(std::move(input));
  return impl.inputs.size() - 1;
}

Result<std::size_t> Controller::create(const std::string& path, const CreateOptions& options) {
  const PhaseTimer timer(impl_->report, "create", impl_->session.clock());
  PIF_TRY_VALUE(File file, impl_->client.create(path, options));
  impl_->outputs.push_back(Made{std::move(file), std::nullopt, std::nullopt, {}, nullptr, nullptr, nullptr});
  return impl_->outputs.size() - 1;
}

Result<std::size_t> Controller::create_many(std::span<const Client::NewFile> files) {
  const PhaseTimer timer(impl_->report, "create", impl_->session.clock());
  const std::size_t first = impl_->outputs.size();
  Status created;
  for (auto& file : impl_->client.create_many(files)) {
    if (!file && created) created = fail(std::move(file.error()));
    if (created)
      impl_->outputs.push_back(Made{std::move(*file), std::nullopt, std::nullopt, {}, nullptr, nullptr, nullptr});
  }
  if (!created) return fail(std::move(created.error()));
  return first;
}

void Controller::set_file_length(std::size_t output, const FileLength& file_length) {
  PIF_ASSERT(output < impl_->outputs.size(), output, impl_->outputs.size());
  impl_->outputs[output].file_length = file_length;
}
void Controller::set_copy_of(std::size_t output, std::size_t input) {
  PIF_ASSERT(output < impl_->outputs.size() && input < impl_->inputs.size(), output, input);
  impl_->outputs[output].copy_of = input;
}
File& Controller::input(std::size_t i) {
  PIF_ASSERT(i < impl_->inputs.size(), i, impl_->inputs.size());
  return impl_->inputs[i];
}
File& Controller::output(std::size_t i) {
  PIF_ASSERT(i < impl_->outputs.size(), i, impl_->outputs.size());
  return impl_->outputs[i].file;
}
Report& Controller::report() { return impl_->report; }
std::string Controller::trace() const { return impl_->trace.to_json(impl_->report, impl_->session.clock()); }
bool Controller::is_cancelled() const { return impl_->options.is_cancelled && impl_->options.is_cancelled(); }
Client& Controller::client() { return impl_->client; }
const std::string& Controller::folder() const { return impl_->options.folder; }

const Result<Calibration>& Controller::calibration() {
  auto& calibration = impl_->calibration;
  if (!calibration) {
    const std::string& folder = impl_->options.folder;
    calibration = folder.empty() ? Result<Calibration>(fail(Code::kNotFound, "there is no calibration"))
                                 : load_calibration(folder);
  }
  return *calibration;
}

void Controller::predict(const std::function<Prediction(const Calibration&)>& formula) {
  Report& report = impl_->report;
  if (!report.is_wanted) return;
  const auto& found = calibration();
  report.calibration = found ? "of " + found->made : found.error().text;
  if (found) report.prediction = formula(*found);
}

// ---- running ------------------------------------------------------------------------------------------------------

Result<std::vector<proto::NodeInfo>> Controller::Impl::all_nodes() {
  PIF_TRY_VALUE(const proto::NodesReply answer, session.call(proto::Nodes()));
  return std::vector<proto::NodeInfo>(answer.nodes().begin(), answer.nodes().end());
}

Status Controller::Impl::choose_stand_ins() {
  std::vector<StandIns::File> files;
  for (auto& file : inputs) {
    PIF_TRY(client::renew_if_needed(file));
    PIF_TRY_VALUE(const FileLength file_length, file.file_length());
    files.push_back({&client::parts_of(file), file_length});
  }
  for (auto& made : outputs) files.push_back({&client::parts_of(made.file), {}});
  PIF_TRY_VALUE(stand_ins, StandIns::choose(files));
  return {};
}

Result<Workers> Controller::Impl::workers_of(const Job& job) {
  PIF_TRY(choose_stand_ins());
  Workers workers;
  std::vector<proto::NodeInfo> known;
  const auto add = [&](File& file) {
    for (const auto& node : client::parts_of(file).nodes) {
      const bool is_known = std::any_of(known.begin(), known.end(), [&](const auto& k) { return k.id() == node.id(); });
      if (!is_known) known.push_back(node);
    }
  };
  for (auto& file : inputs) add(file);
  for (auto& made : outputs) add(made.file);
  if (job.nodes.empty() && !known.empty()) {
    for (const auto& node : known) workers.add(node, stand_ins);
    return workers;
  }
  PIF_TRY_VALUE(std::vector<proto::NodeInfo> all, all_nodes());
  if (job.nodes.empty()) {
    std::erase_if(all, [](const auto& node) { return node.state() != 1; });
    if (all.empty()) return fail(Code::kUnavailable, "no LFS is up: see pif status");
    for (const auto& node : all) workers.add(node, stand_ins);
    return workers;
  }
  for (const std::uint32_t id : job.nodes) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& node) { return node.id() == id; });
    if (found == all.end()) return fail(Code::kInvalid, fmt::format("there is no node {}: see pif node list", id));
    workers.add(*found, stand_ins);
  }
  return workers;
}

Result<job::JobDescription> Controller::Impl::describe(const Job& job, const Workers& workers) {
  PIF_ASSERT(workers.size() > 0 && workers.stand_for.size() == workers.size(), workers.size());
  job::JobDescription description;
  description.set_version(kJobVersion);
  std::string secret;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t word = session.entropy().next();
    secret.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  description.set_secret(secret);
  description.set_credential(session.credential());
  description.set_value(job.value);
  std::vector<std::uint32_t> described = workers.stand_for;
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    *description.add_nodes() = brief(workers.places[rank]);
    description.add_stands_for(workers.stand_for[rank]);
  }
  const auto add = [&](File& file, const FileLength& file_length, job::JobFile& entry) {
    const client::FileParts& parts = client::parts_of(file);
    entry = job_file_of(parts);
    *entry.mutable_file_length() = wire::proto_of(file_length);
    for (const auto& node : parts.nodes) {
      if (std::find(described.begin(), described.end(), node.id()) != described.end()) continue;
      *description.add_other_nodes() = brief(stand_ins.place_of(node));
      description.add_other_stand_for(node.id());
      described.push_back(node.id());
    }
  };
  for (auto& file : inputs) {
    PIF_TRY(client::renew_if_needed(file));
    PIF_TRY_VALUE(const FileLength file_length, file.file_length());
    add(file, file_length, *description.add_inputs());
  }
  for (auto& made : outputs) {
    PIF_TRY(client::renew_if_needed(made.file));
    add(made.file, made.file_length.value_or(FileLength{}), *description.add_outputs());
  }
  description.set_apart(options.apart);
  description.set_threads(job.threads);
  description.set_traced(options.is_traced);
  if (options.debugged) description.set_debugged(*options.debugged);
  for (const BroughtFile& file : options.files) {
    job::BroughtFile& brought = *description.add_files();
    brought.set_name(file.name);
    brought.set_content(file.content);
  }
  PIF_TRY(let_talk(description));
  return description;
}

// Workers on several machines talk over tcp, with keys of their own where the file system has keys.
Status Controller::Impl::let_talk(job::JobDescription& description) const {
  if (all_are_near(description)) return {};
  if (options.build.empty() && !options.apart) {
    return fail(Code::kUnsupported,
                fmt::format("{} has no build id, by which other machines know whether they have the same program: link "
                            "it with -Wl,--build-id",
                            options.program));
  }
  if (description.nodes_size() > kFarWorkersMax) {
    return fail(Code::kTooLarge, fmt::format("{} workers, not all on one machine: at most {} may be",
                                             description.nodes_size(), kFarWorkersMax));
  }
  bool encrypts = false;
  for (const auto& node : description.nodes()) {
    if (node.endpoints().tcp().empty()) {
      return fail(Code::kUnavailable,
                  "it does not listen on tcp, and not all workers are on its machine: write tcp = \"curve\" "
                  "into its file system's pif.toml, then: pif down, pif up",
                  node.name());
    }
    encrypts = encrypts || !node.endpoints().curve_key().empty();
  }
  if (!encrypts) return {};
  PIF_TRY_VALUE(const net::CurveKeys keys, net::make_curve_keys());
  description.set_mail_public(keys.public_key);
  description.set_mail_secret(keys.secret_key);
  return {};
}

Result<std::vector<std::string>> Controller::run(const Job& job) {
  if (job.value.size() > kJobValueBytesMax) {
    return fail(Code::kTooLarge,
                fmt::format("a job's value of {} bytes; at most {} are allowed", job.value.size(), kJobValueBytesMax));
  }
  Impl& impl = *impl_;
  PIF_TRY_VALUE(const Workers workers, impl.workers_of(job));
  if (impl.options.debugged && *impl.options.debugged >= workers.size())
    return fail(Code::kInvalid, fmt::format("there is no worker {} to be debugged: the job has {}, from 0",
                                            *impl.options.debugged, workers.size()));
  PIF_TRY_VALUE(const job::JobDescription description, impl.describe(job, workers));
  std::vector<FolderGrant> grants = impl.options.grants;
  grants.insert(grants.end(), job.grants.begin(), job.grants.end());
  PIF_TRY(check_grants(grants));
  if (impl.options.on_start) impl.options.on_start();
  JobRun run(
      impl.session, impl.options, workers.places, [&impl] { return impl.keep_files(); }, job.stream, std::move(grants));
  {
    const PhaseTimer timer(impl.report, "spawn", impl.session.clock());
    if (auto started = run.start(description.SerializeAsString()); !started)
      return impl.not_started(impl.with_paths(std::move(started.error())));
  }
  const PhaseTimer timer(impl.report, "work", impl.session.clock());
  const auto ends = run.wait();
  if (impl.options.on_finish) impl.options.on_finish();
  if (!ends) return fail(impl.with_paths(ends.error()));
  if (ends->empty()) return std::vector<std::string>();
  if (const Status collected = impl.collect(*ends, workers); !collected)
    return fail(impl.with_paths(collected.error()));
  std::vector<std::string> values;
  for (const auto& end : *ends) values.push_back(end.value());
  return values;
}

// Leases are renewed while workers are at it: a job may take longer than they last. A server that does not answer is
// asked again later, and in the end by the commit; only what it says is final.
Status Controller::Impl::keep_files() {
  Status kept;
  for (auto& file : inputs) {
    if (kept) kept = client::renew_if_needed(file);
  }
  for (auto& made : outputs) {
    if (kept) kept = client::renew_if_needed(made.file);
  }
  return kept || kept.error().code != Code::kStaleFile ? Status() : kept;
}

// LFSs know files by numbers, people by paths.
Error Controller::Impl::with_paths(Error error) {
  const auto name = [&](File& file) {
    const client::FileParts& parts = client::parts_of(file);
    const std::string number = fmt::format("file {}", parts.file.value);
    const std::size_t at = error.text.find(number);
    if (at != std::string::npos) error.text.replace(at, number.size(), parts.path);
  };
  for (auto& file : inputs) name(file);
  for (auto& made : outputs) name(made.file);
  return error;
}

// An LFS that does not answer, but takes part in the view: others stand in for it once it is declared lost.
tl::unexpected<Error> Controller::Impl::not_started(Error error) {
  bool is_protected = false;
  bool is_unprotected = false;
  const auto look = [&](File& file) {
    const client::FileParts& parts = client::parts_of(file);
    const bool has = std::any_of(parts.nodes.begin(), parts.nodes.end(),
                                 [&](const auto& node) { return node.name() == error.node; });
    if (has) (parts.is_protected() ? is_protected : is_unprotected) = true;
  };
  for (auto& file : inputs) look(file);
  for (auto& made : outputs) look(made.file);
  if (access::is_lost(error.code) && is_protected && !is_unprotected) {
    error.text += fmt::format(
        ": a worker cannot be started there. Start it again, or go on without it: pif node lost {} "
        "(the PIF Server may declare it lost by itself in a moment)",
        error.node);
  }
  return fail(std::move(error));
}

Status Controller::Impl::collect(const std::vector<job::WorkerEnd>& ends, const Workers& workers) {
  PIF_ASSERT(ends.size() == workers.size(), ends.size(), workers.size());
  report.workers = static_cast<std::uint32_t>(workers.size());
  for (std::uint32_t rank = 0; rank < ends.size(); ++rank) {
    const job::WorkerEnd& end = ends[rank];
    if (static_cast<std::size_t>(end.outputs_size()) != outputs.size())
      return sent_nonsense(rank, fmt::format("{} outputs of a job that has {}", end.outputs_size(), outputs.size()));
    report.bytes_read_local += end.bytes_read();
    report.bytes_written_local += end.bytes_written();
    report.bytes_cloned += end.bytes_cloned();
    report.bytes_moved += end.bytes_sent();
    report.bytes_messaged += end.bytes_messaged();
    if (options.is_traced) trace.add_worker(rank, workers.places[rank].name(), end);
  }
  report.bytes_client_side = report.bytes_read_local + report.bytes_written_local;
  for (std::size_t number = 0; number < outputs.size(); ++number) {
    Made& made = outputs[number];
    const auto& nodes = client::parts_of(made.file).file_layout.nodes();
    made.ends.assign(static_cast<std::size_t>(nodes.size()), {});
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const auto lfs = std::find(nodes.begin(), nodes.end(), workers.stand_for[rank]);
      if (lfs == nodes.end()) continue;
      made.ends[static_cast<std::size_t>(lfs - nodes.begin())] = ends[rank].outputs(static_cast<int>(number));
    }
  }
  return {};
}

// ---- commit -------------------------------------------------------------------------------------------------------

// As the controller said, or as far as the workers' rows go; check_rows() then sees that none is missing.
Result<FileLength> Controller::Impl::file_length_of(Made& made) {
  if (made.file_length) return *made.file_length;
  const client::FileParts& parts = client::parts_of(made.file);
  FileLength file_length;
  for (LfsIndex lfs = 0; lfs < made.ends.size(); ++lfs) {
    const Row rows = made.ends[lfs].rows();
    if (rows > 0) file_length.records = std::max(file_length.records, parts.layout.record_at({lfs, rows - 1}) + 1);
    file_length.bytes += made.ends[lfs].bytes();
  }
  return file_length;
}

// A file that is committed has on every LFS what its length and layout say.
Status Controller::Impl::check_rows(Made& made, const FileLength& file_length) {
  const client::FileParts& parts = client::parts_of(made.file);
  for (LfsIndex lfs = 0; lfs < parts.layout.width(); ++lfs) {
    const std::uint64_t expected = parts.layout.rows(lfs, file_length.records);
    const std::uint64_t rows = lfs < made.ends.size() ? made.ends[lfs].rows() : 0;  // no worker: it has made none
    if (rows != expected) {
      return fail(Code::kInternal,
                  fmt::format("{}: the workers made {} rows on {}, where {} records give {}", parts.path, rows,
                              parts.nodes[lfs].name(), file_length.records, expected));
    }
  }
  return {};
}

Status Controller::Impl::start_seal(Made& made, const FileLength& file_length) {
  const std::size_t width = client::parts_of(made.file).layout.width();
  PIF_ASSERT(made.ends.empty() || made.ends.size() == width, made.ends.size(), width);  // empty: no job has run
  std::vector<access::ComponentEnd> ends;
  for (LfsIndex lfs = 0; lfs < made.ends.size(); ++lfs) {
    const job::ComponentEnd& end = made.ends[lfs];
    if (!end.here()) continue;  // no component: no rows
    ends.push_back({lfs, true, {end.rows(), end.bytes(), end.data_tail_sum(), end.index_tail_sum()}});
  }
  made.sealing = std::make_unique<access::Sealing>();
  if (made.copy_of && stand_ins.is_empty()) {
    PIF_ASSERT(*made.copy_of < inputs.size(), *made.copy_of, inputs.size());  // close_inputs() came too early
    File& source = inputs[*made.copy_of];
    if (has_parity_of(client::parts_of(made.file), client::parts_of(source)))
      made.sealing->set_copied_from(client::grant_of(source).capability());
  }
  made.seals.reset();
  if (!stand_ins.is_empty()) made.grant = grant_with(stand_ins, made.file);
  access::Grant& grant = made.grant ? *made.grant : client::grant_of(made.file);
  made.seals = std::make_unique<access::Requests>(session.links(), grant);
  made.sealing->start(*made.seals, file_length, ends, kSealTimeout);
  return made.seals->step();
}

// All go on together: LFSs that gather parity for one have that of others to make durable with it.
Status Controller::Impl::finish_seals() {
  while (true) {
    bool are_all_done = true;
    for (Made& made : outputs) {
      PIF_ASSERT(made.seals != nullptr && made.sealing != nullptr);
      PIF_TRY(made.seals->step());
      are_all_done = are_all_done && made.seals->idle();
    }
    if (are_all_done) return {};
    PIF_TRY(pump(session, options));
  }
}

Status Controller::Impl::seal(std::vector<FileLength>& file_lengths) {
  const PhaseTimer timer(report, "seal", session.clock());
  for (auto& file : inputs) PIF_TRY(client::renew_if_needed(file));  // they are as they were when the workers read them
  for (Made& made : outputs) {
    PIF_TRY(client::renew_if_needed(made.file));
    PIF_TRY_VALUE(const FileLength file_length, file_length_of(made));
    PIF_TRY(check_rows(made, file_length));
    PIF_TRY(start_seal(made, file_length));
    file_lengths.push_back(file_length);
  }
  return finish_seals();
}

Status Controller::commit() {
  Impl& impl = *impl_;
  std::vector<FileLength> file_lengths;
  PIF_TRY(impl.seal(file_lengths));
  const PhaseTimer timer(impl.report, "commit", impl.session.clock());
  std::vector<File*> files;
  for (Made& made : impl.outputs) files.push_back(&made.file);
  const auto committed = client::commit_sealed_many(impl.session, files, file_lengths);
  PIF_ASSERT(file_lengths.size() == files.size() && committed.size() == files.size(), files.size(), committed.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    PIF_TRY(committed[i]);
    impl.report.records += file_lengths[i].records;
    impl.report.bytes += file_lengths[i].bytes;
  }
  impl.outputs.clear();
  return {};
}

Result<File> Controller::read_unseen(std::size_t output) {
  PIF_ASSERT(output < impl_->outputs.size(), output, impl_->outputs.size());
  std::vector<FileLength> file_lengths;
  PIF_TRY(impl_->seal(file_lengths));
  impl_->report.records += file_lengths[output].records;
  impl_->report.bytes += file_lengths[output].bytes;
  return client::read_sealed(impl_->outputs[output].file, file_lengths[output]);
}

void Controller::close_inputs() { impl_->inputs.clear(); }

void Controller::abort() {
  for (auto& made : impl_->outputs) (void)made.file.abort().has_value();
  impl_->outputs.clear();
}

}  // namespace pif::tool
