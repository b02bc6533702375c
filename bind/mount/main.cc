// pif-mount: a file system as a folder that existing programs use. One process for each mount; docs/MOUNT.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>

#include <CLI/CLI.hpp>
#include <thread>
#include <vector>

#include "operations/mount.h"
#include "pif/base/assert.h"
#include "pif/base/handle.h"
#include "pif/base/print.h"
#include "pif/base/version.h"
#include "process/daemon.h"
#include "process/mount_point.h"

namespace {

using namespace pif;
using namespace pif::mount;

constexpr int kExitDone = 0, kExitUsage = 2, kExitFailed = 3;  // as `pif` has them
constexpr auto kGatheredFor = std::chrono::milliseconds(750);
constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr unsigned kWriteBytesMax = 1u << 20;

constexpr auto kExamples = R"(Examples:
  pif mount /mnt/data                      the file system of this folder, or your default
  pif mount /srv/pif /mnt/data -o ro       that of /srv/pif, for reading
  pif umount /mnt/data

/etc/fstab:
  /srv/pif  /mnt/data  fuse.pif-mount  allow_other,_netdev  0  0

Options after -o: ro, lazy (new small files go together, up to a second after their close),
allow_other, attr_timeout=SECONDS (1), rewrite_max=BYTES (1G), and what mount(8) knows:
dev, suid, exec, noatime and the like. What a program may expect of
a mount is in MOUNT.md.)";

int report(const Error& error) {
  print_error("pif-mount: " + one_line(error.to_string()) + "\n");
  return error.code == Code::kInvalid ? kExitUsage : kExitFailed;
}

// Sends what is gathered for too long, until it ends.
class Sender {
 public:
  explicit Sender(Mount& mount) : mount_(mount), thread_([this] { run(); }) {}
  ~Sender() {
    mount_.alarm.end();
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

 private:
  void run() {
    Time looked = now();
    while (mount_.alarm.wait(kLookEvery)) {
      const Time time = now();
      send_due(mount_, time - kGatheredFor);
      if (time - looked < kLookEvery) continue;
      send_gathered(mount_, time - kGatheredFor);
      looked = time;
    }
  }
  Mount& mount_;
  std::thread thread_;
};

void begin(void*, fuse_conn_info* connection) {
  // The kernel would own sizes and times; splicing gains nothing where bytes are checked on their way.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                                             FUSE_CAP_SPLICE_MOVE);
  if ((connection->capable & FUSE_CAP_AUTO_INVAL_DATA) != 0) connection->want |= FUSE_CAP_AUTO_INVAL_DATA;
  if ((connection->capable & FUSE_CAP_ATOMIC_O_TRUNC) != 0) connection->want |= FUSE_CAP_ATOMIC_O_TRUNC;
  connection->max_write = kWriteBytesMax;
}

// Owns a session, and what it has mounted.
class Session {
 public:
  explicit Session(Mount& mount) : mount_(mount) {
    fuse_lowlevel_ops operations = {};
    operations.init = begin;
    add_name_operations(operations);
    add_folder_operations(operations);
    add_file_operations(operations);
    add_attribute_operations(operations);
    std::string words = "default_permissions,subtype=pif-mount,fsname=" + source();
    for (const std::string& word : mount.options.for_kernel) words += "," + word;
    std::vector<std::string> texts = {"pif-mount", "-o", words};
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(argv.size()), argv.data());
    session_ = fuse_session_new(&arguments, &operations, sizeof operations, &mount);
    mount.session = session_;
  }
  ~Session() {
    if (session_ == nullptr) return;
    if (is_mounted_) fuse_session_unmount(session_);
    fuse_remove_signal_handlers(session_);
    fuse_session_destroy(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status mount() {
    if (session_ == nullptr) return fail(Code::kInvalid, "the kernel's part of FUSE takes these options not");
    if (fuse_set_signal_handlers(session_) != 0) return fail(Code::kInternal, "signals cannot be caught");
    if (fuse_session_mount(session_, mount_.options.mount_point.c_str()) != 0)
      return fail(Code::kIo, "cannot mount on " + mount_.options.mount_point + ": is /dev/fuse there?");
    is_mounted_ = true;
    return {};
  }
  // Until it is unmounted, or a signal comes.
  Status run() {
    fuse_loop_config* config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 0);
    fuse_loop_cfg_set_max_threads(config, mount_.options.clients * 2);
    fuse_loop_cfg_set_idle_threads(config, mount_.options.clients);
    const int ended = fuse_session_loop_mt(session_, config);
    fuse_loop_cfg_destroy(config);
    return ended < 0 ? fail_errno(-ended, "the mount ended") : Status();
  }

 private:
  // Commas separate options.
  std::string source() const {
    std::string text = mount_.options.where.empty() ? "pif" : mount_.options.where;
    for (std::size_t at = 0; (at = text.find_first_of(",\\", at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  }
  Mount& mount_;
  fuse_session* session_ = nullptr;
  bool is_mounted_ = false;
};

void log_to(bool foreground) {
  spdlog::sink_ptr sink;
  if (foreground)
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  else
    sink = std::make_shared<spdlog::sinks::syslog_sink_mt>("pif-mount", LOG_PID, LOG_DAEMON, false);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("pif-mount", std::move(sink)));
}

// starter: who waits until it is mounted, if anybody does.
Status serve(MountOptions options, UniqueFd& starter) {
  const bool foreground = options.foreground;
  Mount mount(std::move(options));
  PIF_TRY(mount.clients.connect_first());
  Session session(mount);
  PIF_TRY(session.mount());
  if (starter) report_to(std::move(starter), kExitDone);
  log_to(foreground);
  Status ended;
  {
    const Sender sender(mount);
    ended = session.run();
  }
  finish_all(mount);
  return ended;
}

struct CommandLine {
  MountOptions options;
  std::vector<std::string> operands, lists;
  std::string where;
  int report_to = -1;  // of a process in the background
};

Status understand(CommandLine& line) {
  MountOptions& options = line.options;
  for (const std::string& list : line.lists) PIF_TRY(add_mount_words(list, options));
  options.where = line.operands.size() == 2 ? line.operands[0] : line.where;
  PIF_TRY_VALUE(options.mount_point, prepare_mount_point(line.operands.back()));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  set_assertion_handler(&end_process);
  CLI::App app("Mounts a file system on a folder, so that every program can use it.", "pif mount");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("pif-mount {}", version()), "Print the version and leave");
  CommandLine line;
  app.add_option("operands", line.operands,
                 "Folder of the file system (else --pif, $PIF, pif.toml here or above, your "
                 "default), and the folder to mount on")
      ->required()
      ->expected(1, 2)
      ->type_name("[WHERE] DIR");
  app.add_option("-o", line.lists, "Options, separated by commas: see below")
      ->type_name("OPTION,...")
      ->allow_extra_args(false);
  app.add_option("--pif", line.where, "Folder of the file system")->type_name("DIR");
  app.add_option("--report-to", line.report_to)->group("");
  app.add_flag("-f,--foreground", line.options.foreground, "Stay in front, and log to stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (const auto understood = understand(line); !understood) return report(understood.error());
  UniqueFd starter(line.report_to);
  if (!line.options.foreground && !starter) {
    const auto started = start_in_background(argc, argv);
    return started ? *started : report(started.error());
  }
  if (starter) ::fcntl(starter.get(), F_SETFD, FD_CLOEXEC);
  const auto ended = serve(std::move(line.options), starter);
  const int exit_code = ended ? kExitDone : report(ended.error());
  if (starter) report_to(std::move(starter), exit_code);
  return exit_code;
}
