#include "pif/tool/tool_main.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/worker_options.h"
#include "memory/mapping.h"
#include "pif/base/assert.h"
#include "pif/base/path.h"
#include "pif/base/print.h"
#include "pif/base/typed_path.h"
#include "pif/cluster/cluster.h"
#include "pif/component/build.h"
#include "pif/component/real_storage.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"
#include "report/report_file.h"
#include "report/terminal.h"
#include "worker/brought_files.h"
#include "worker/worker_ports.h"

namespace pif::tool {
namespace {

constexpr int kWorkerSocket = 3;  // where the worker host puts the connection; its spawner knows it too

struct CommonOptions {
  std::string where;
  std::string route = "auto";
  bool stale = false;
  std::string report;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool explain = false;
  std::string trace;
  std::optional<std::uint32_t> debugged;
  WorkerOptions workers;
};

// ---- the worker's role --------------------------------------------------------------------------------------------

int failed(const std::string& who, const Error& error) {
  print_error(fmt::format("{}: {}\n", who, one_line(error.to_string())));
  return static_cast<int>(error.code == Code::kInvalid ? ExitCode::kUsage : ExitCode::kFailed);
}

Result<Mailbox> listen_at(const MailPlace& place, const std::string& tcp) {
  net::MessengerOptions options;
  options.heartbeats =
      false;  // a letter is sent once: who is stopped for long must not lose any. The LFS knows who has died
  options.listen.ipc = place.at.ipc();
  options.listen.unix_path = place.at.unix_path();
  options.listen.tcp = tcp;
  options.listen.insecure_loopback = place.keys.secret_key.empty();
  options.listen.curve = options.client_keys = place.keys;
  options.listen.only_key = place.keys.public_key;
  Mailbox box;
  PIF_TRY_VALUE(box.messenger, net::make_real_messenger(std::move(options)));
  box.at = net::listening(*box.messenger);
  return box;
}

// At an address of this machine, which need not be the one that others know.
Result<Mailbox> listen(const MailPlace& place) {
  const char* const where = std::getenv(kWorkerListen);
  if (place.at.tcp().empty() || where == nullptr) return listen_at(place, place.at.tcp());
  PIF_TRY_VALUE(const WorkerPorts ports, parse_worker_listen(where));
  PIF_TRY_VALUE(Mailbox box, listen_at_free_port(ports, static_cast<std::uint64_t>(::getpid()),
                                                 [&](const std::string& tcp) { return listen_at(place, tcp); }));
  box.at.set_tcp(advertised(box.at.tcp(), place.at.tcp()));
  return box;
}

int work(const Tool& tool) {
  UniqueFd connection(kWorkerSocket);
  if (::fcntl(connection.get(), F_SETFD, FD_CLOEXEC) != 0) {
    connection.release();
    return failed(tool.name,
                  {Code::kInvalid, fmt::format("{} is how an LFS starts this program, not you", kWorkerRole), {}});
  }
  end_process_at_lost_pages(tool.name);
  ::prctl(PR_SET_NAME, tool.name.c_str());  // it was run by a descriptor, whose number its name is else
  auto messenger = net::make_real_messenger({});
  if (!messenger) return failed(tool.name, messenger.error());
  const auto storage = component::make_real_storage();
  net::SystemEntropy entropy;
  WorkerWorld world{**messenger, *storage, entropy, {}, listen};
  world.connection.fd = std::move(connection);
  world.has_threads = true;
  world.keep_file = keep_brought_file;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a pipe, but somebody reads along
  const Worker::Outcome outcome = Worker::run(std::move(world), tool.work);
  if (outcome) return static_cast<int>(ExitCode::kDone);
  // The LFS keeps the end of stderr.
  return outcome.is_reported ? static_cast<int>(ExitCode::kFailed) : failed(tool.name, outcome.status.error());
}

// As of `pif`: an option with an empty value is no option that was not given.
Status check_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty() && option->nonpositional() && option->get_items_expected_min() > 0)
        return fail(Code::kInvalid, option->get_name() + " was given an empty value");
  return {};
}

// ---- the controller's role ----------------------------------------------------------------------------------------

// While a job runs, SIGINT, SIGTERM and SIGHUP wait to be asked for instead of ending the process; those that are
// ignored, as behind nohup, stay so.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set_, signal);
    }
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void hold() {
    if (!held_) pthread_sigmask(SIG_BLOCK, &set_, &before_);
    held_ = true;
  }
  // The job is over, and what it leaves is said before the process dies of a signal that came too late to end it.
  void release() {
    if (!held_) return;
    static_cast<void>(came());
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    held_ = false;
  }
  bool came() {
    const timespec at_once{};
    for (int signal = 0; held_ && (signal = sigtimedwait(&set_, nullptr, &at_once)) > 0;) signal_ = signal;
    return signal_ != 0;
  }
  // The process dies of the signal that came, so that a shell knows it and ends its script.
  void die() {
    release();
    if (signal_ != 0) std::raise(signal_);
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool held_ = false;
  int signal_ = 0;
};

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_option("--pif", common.where, "folder of the file system (default: $PIF, else found from here)");
  app.add_option("--route", common.route,
                 "how to reach the daemons, and workers each other: auto, unix, ipc, tcp (for measurements)")
      ->envname("PIF_ROUTE")
      ->check(CLI::IsMember({"auto", "unix", "ipc", "tcp"}));
  app.add_flag("--stale", common.stale, "take inputs that `pif stat` marks, too");
  app.add_option("--report", common.report, "write phases, bytes and times to FILE as JSON")->type_name("FILE");
  app.add_flag("--json", common.json, "print the report as one JSON document");
  app.add_flag("-q,--quiet", common.quiet, "print nothing but errors");
  app.add_flag("--verbose", common.verbose, "print the report");
  app.add_flag("--explain", common.explain, "print the plan and do nothing");
  app.add_option("--trace", common.trace,
                 "write what each worker did when to FILE: a Chrome trace, as Perfetto shows it")
      ->type_name("FILE");
  app.add_option("--debug-worker", common.debugged,
                 "stop that worker at its start, for a debugger, and say where it is")
      ->type_name("RANK");
  add_worker_options(app, common.workers);
}

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

// The program that runs here: LFSs get its build, and those that lack it get the program.
void describe_program(ControllerOptions& options) {
  options.program = program_path();
  Handle own;
  own.fd = UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!own.fd) return;  // it may be run, but not read
  auto image = component::make_real_storage()->adopt(std::move(own));
  if (!image) return;
  options.build = component::build_of(**image);
  options.image = std::move(*image);
}

// `options`: what the user gives to workers.
ControllerOptions controller_options(const CommonOptions& common, HeldSignals& signals, ProgressLine& line,
                                     ControllerOptions options) {
  describe_program(options);
  options.arguments = {kWorkerRole};
  std::error_code error;
  options.working_folder = std::filesystem::current_path(error).string();
  if (auto folder = cluster::find_cluster(common.where)) options.folder = std::move(*folder);
  if (!is_utf8(options.working_folder))
    options.working_folder.clear();  // messages bear nothing else; workers start in the root then
  options.apart = common.route == "tcp";
  options.on_start = [&signals] { signals.hold(); };
  options.is_cancelled = [&signals] { return signals.came(); };
  options.on_progress = [&line](std::uint64_t done, std::uint64_t total) { line.show(done, total); };
  options.on_finish = [&line] { line.clear(); };
  if (!common.quiet) {
    options.on_words = [&line](std::uint32_t, const std::string& node, std::string_view words) {
      line.clear();
      print_error(fmt::format("{}: {}\n", node, visible(words)));
    };
  }
  options.is_traced = !common.trace.empty();
  options.debugged = common.debugged;
  return options;
}

Result<ExitCode> explain(const Tool& tool, Controller& controller, const CommonOptions& common) {
  if (!tool.explain) return fail(Code::kUnsupported, fmt::format("{} has no plan to explain", tool.name));
  PIF_TRY_VALUE(const Plan plan, tool.explain(controller));
  if (common.json) {
    auto json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : plan) json[name] = value;
    PIF_TRY(print(json.dump(2) + '\n'));
  } else {
    std::string text;
    for (const auto& [name, value] : plan) text += fmt::format("{}: {}\n", name, value);
    PIF_TRY(print(text));
  }
  return ExitCode::kDone;
}

// As `pif` does it.
Status print_error(const Error& error) {
  using Json = nlohmann::ordered_json;
  const Json document = {{"error", {{"code", code_name(error.code)}, {"text", error.text}, {"node", error.node}}}};
  return print(document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
}

// Of a job whose outputs are there: whoever hears that this failed must not take the job for one that failed. The file
// comes first: if that fails, the error is all that --json prints.
Status show_report(const Report& report, const CommonOptions& common, ReportFile& file) {
  const std::string json = report.to_json() + '\n';
  Status shown = file.write(json);
  if (shown && common.json)
    shown = print(json);
  else if (shown && common.verbose)
    shown = print(report.to_text());
  if (!shown) shown.error().text = "the job is done, but not its report: " + shown.error().text;
  return shown;
}

Result<ExitCode> control(const Tool& tool, const CommonOptions& common, HeldSignals& signals) {
  if (common.report == "-" && (common.json || common.verbose))
    return fail(Code::kInvalid, "--report - prints the report already: leave --json and --verbose away");
  net::SystemClock clock;
  const Time start = clock.now();
  PIF_TRY_VALUE(ReportFile file, ReportFile::open(common.explain ? "" : common.report));
  PIF_TRY_VALUE(ReportFile trace, ReportFile::open(common.explain ? "" : common.trace));
  ConnectOptions connect;
  connect.where = common.where;
  connect.program = tool.name;
  connect.route = common.route;
  connect.stale = common.stale;
  ControllerOptions given;
  PIF_TRY(take_worker_options(common.workers, given));
  PIF_TRY_VALUE(Client client, Client::connect(connect));
  const bool is_shown = !common.quiet && !(tool.prints && ::isatty(STDOUT_FILENO) == 1);
  ProgressLine line(is_shown && ::isatty(STDERR_FILENO) == 1, clock);
  Controller controller(client, controller_options(common, signals, line, std::move(given)));
  controller.report().tool = tool.name;
  controller.report().is_quiet = common.quiet;
  controller.report().is_json = common.json;
  controller.report().is_wanted = common.json || common.verbose || !common.report.empty();
  controller.report().add("connect", clock.now() - start);
  if (common.explain) return explain(tool, controller, common);
  const auto code = tool.control(controller);
  signals.release();
  if (!code) return fail(code.error());
  line.clear();
  if (!common.trace.empty()) PIF_TRY(trace.write(controller.trace()));
  PIF_TRY(show_report(controller.report(), common, file));
  return *code;
}

}  // namespace

void add_assumptions(Plan& plan, const Result<Calibration>& calibration, std::uint64_t bytes) {
  if (!calibration) {
    plan.emplace_back("predicted", "nothing: " + calibration.error().text);
    return;
  }
  plan.emplace_back("calibration", "of " + calibration->made);
  const bool fits = bytes < (calibration->hardware.memory_gib << 30) / 2;
  plan.emplace_back("assumed", fits ? "what is read is in the page cache"
                                    : "what is read is in the page cache, though this is more than half of the memory: "
                                      "from disk it takes longer");
}

int main(int argc, char** argv, const Tool& tool) {
  fill_standard_streams();
  set_assertion_handler(&end_process);  // a call of the client that breaks one ends the tool, too
  net::tune_allocator();
  if (argc > 1 && std::string_view(argv[1]) == kWorkerRole) return work(tool);
  CommonOptions common;
  CLI::App app(tool.summary, tool.name);
  app.set_version_flag("--version", std::string(PIF_VERSION));
  if (!tool.examples.empty()) app.footer("Examples:\n" + tool.examples);
  if (tool.options) tool.options(app);
  add_common(app, common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      return failed(tool.name, {Code::kInvalid, fmt::format("{} ({} --help shows how)", error.what(), tool.name), {}});
    app.exit(error);
    if (std::cout.flush()) return static_cast<int>(ExitCode::kDone);
    return failed(tool.name, {Code::kIo, "cannot write to standard output", {}});
  }
  HeldSignals signals;
  const Status values = check_values(app);
  const auto code = values ? control(tool, common, signals) : Result<ExitCode>(fail(values.error()));
  int exit_code = code ? static_cast<int>(*code) : failed(tool.name, code.error());
  if (!code && common.json && !print_error(code.error())) exit_code = static_cast<int>(ExitCode::kFailed);
  signals.die();
  return exit_code;
}

Result<ExitCode> run_and_commit(Controller& controller, const Job& job) {
  PIF_TRY(controller.run(job));
  PIF_TRY(controller.commit());
  return ExitCode::kDone;
}

Result<std::string> pif_path(const std::string& path) { return parse_path(path); }

}  // namespace pif::tool
