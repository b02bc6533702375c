// Parity: what it costs, beside the same work on files without it, and what a lost LFS costs. 8 LFSs, 2 bevies of 4.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "harness.h"
#include "pif/client/client.h"

namespace pif::bench {
namespace {

constexpr unsigned kLfss = 8;
constexpr std::uint32_t kBevy = 4;
const std::vector<std::string> kParity = {"--bevy", std::to_string(kBevy)};

Client connected(const System& system) {
  auto client = Client::connect({.where = system.folder()});
  if (!client) die(client.error().to_string());
  return std::move(*client);
}

// What the call gave; the program ends with its error.
template <typename T>
T must(pif::Result<T> result) {
  if (!result) die(result.error().to_string());
  return std::move(*result);
}

void must(const Status& status) {
  if (!status) die(status.error().to_string());
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void add_pair(Context& c, const std::string& name, const Pair& p, double goal) {
  c.report.add({name, seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void remove_all(const System& system, const std::vector<std::string>& names) {
  for (const std::string& name : names) run(system.command({"pif", "rm", name}));
  system.settle();
}

void must_hold(Context& c, const System& system, const std::string& name, const std::string& local) {
  const std::string back = c.options.folder + "/back";
  must_run(system.command({"pif", "get", name, back}), &c.watch);
  if (!same_bytes(local, back)) die(name + ": the bytes differ");
  unlink(back.c_str());
}

// ---- whole files ---------------------------------------------------------------------------------------------------

void bench_puts(Context& c, const System& system) {
  const std::string theirs = c.options.folder + "/copied";
  const auto prepare = [&] {
    remove_all(system, {"/put"});
    unlink(theirs.c_str());
  };
  const auto put = [&](const std::vector<std::string>& options) {
    return must_run(joined(system.command({"pif", "put", c.source, "/put"}), options), &c.watch);
  };
  touch_memory(c);
  add_pair(c, "put with parity : without",
           pair(
               c.options.repeats, prepare, [&] { return put(kParity); }, [&] { return put({}); }),
           0.6);
  const std::vector<std::string> dd = {"dd", "if=" + c.source, "of=" + theirs, "bs=1M", "conv=fsync"};
  add_pair(c, "put with parity : dd conv=fsync",
           pair(
               c.options.repeats, prepare, [&] { return put(kParity); }, [&] { return must_run(dd); }),
           0.45);
  const std::vector<std::string> records = {"--record-length", "100"};
  add_pair(c, "the same, 100-byte records : without",
           pair(
               c.options.repeats, prepare, [&] { return put(joined(records, kParity)); }, [&] { return put(records); }),
           0.5);
  prepare();
  put(joined(records, kParity));
  must_hold(c, system, "/put", c.source);
  prepare();
}

void bench_reads(Context& c, const System& system) {
  must_run(joined(system.command({"pif", "put", c.source, "/with"}), kParity), &c.watch);
  must_run(system.command({"pif", "put", c.source, "/without"}), &c.watch);
  const std::string to = c.options.folder + "/got";
  const auto prepare = [&] {
    unlink(to.c_str());
    ::sync();
  };
  touch_memory(c);
  add_pair(c, "get of a file with parity : without",
           pair(
               c.options.repeats, prepare,
               [&] {
                 return must_run(system.command({"pif", "get", "/with", to}), &c.watch);
               },
               [&] {
                 return must_run(system.command({"pif", "get", "/without", to}), &c.watch);
               }),
           0.95);
  must_hold(c, system, "/with", c.source);
  prepare();
}

void bench_tool(Context& c, const System& system, const std::string& name, const std::vector<std::string>& tool) {
  const auto prepare = [&] { remove_all(system, {"/out"}); };
  touch_memory(c);
  add_pair(c, name + " onto parity : without",
           pair(
               c.options.repeats, prepare,
               [&] {
                 return must_run(joined(system.command(joined(tool, {"/with", "/out"})), kParity), &c.watch);
               },
               [&] {
                 return must_run(system.command(joined(tool, {"/without", "/out"})), &c.watch);
               }),
           0.6);
  prepare();
}

// ---- appends and small files ---------------------------------------------------------------------------------------

// Appends per second of batches of `records` records of 100 bytes to an empty file.
double append_rate(Client& client, bool with_parity, std::size_t records, unsigned batches) {
  const std::string path = "/append";
  CreateOptions options;
  options.format = Format::fixed(100);
  options.bevy = with_parity ? kBevy : 0;
  must(client.create_empty(path, options));
  File file = must(client.open(path, Client::Mode::kWrite));
  const std::vector<std::byte> data(records * 100, std::byte{7});
  const double start = now();
  for (unsigned i = 0; i < batches; ++i) must(file.append(data));
  const double seconds = now() - start;
  if (must(file.file_length()).records != records * batches) die("an append is missing");
  must(file.close());
  must(client.remove(path));
  return batches / seconds;
}

void compare_rates(Context& c, const std::string& name, double goal, const std::function<double(bool)>& rate) {
  std::vector<double> with, without, ratios;
  for (unsigned i = 0; i <= c.options.repeats; ++i) {
    const double ours = rate(true), other = rate(false);
    if (i == 0) continue;  // warm-up
    with.push_back(ours);
    without.push_back(other);
    ratios.push_back(ours / other);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  c.report.add({name, fmt::format("{:.0f}/s", median(with)), fmt::format("{:.0f}/s", median(without)), median(ratios),
                goal, true, fmt::format("{:.2f}-{:.2f}", *low, *high)});
}

double small_files(const System& system, Client& client, bool with_parity, std::size_t bytes, unsigned count) {
  must(client.make_folder("/small"));
  CreateOptions options;
  options.bevy = with_parity ? kBevy : 0;
  options.is_small = true;
  const std::vector<std::byte> data(bytes, std::byte{5});
  const double start = now();
  for (unsigned i = 0; i < count; ++i) {
    const std::string path = fmt::format("/small/{}", i);
    if (bytes == 0) {
      must(client.create_empty(path, options));
      continue;
    }
    File file = must(client.create(path, options));
    must(file.write(data));
    must(file.commit());
  }
  const double seconds = now() - start;
  must(client.remove("/small", true));
  system.settle();
  return count / seconds;
}

void bench_small(Context& c, const System& system) {
  Client client = connected(system);
  const unsigned few = c.options.smoke ? 10 : 300;
  touch_memory(c);
  compare_rates(c, "append of one record : without parity", 0.4,
                [&](bool with) { return append_rate(client, with, 1, few); });
  compare_rates(c, "append of 100,000 records : without parity", 0.5,
                [&](bool with) { return append_rate(client, with, c.options.smoke ? 1000 : 100'000, few / 10); });
  compare_rates(c, "create of an empty file : without parity", 0.9,
                [&](bool with) { return small_files(system, client, with, 0, few); });
  compare_rates(c, "create of a file of 4 KiB : without parity", 0.5,
                [&](bool with) { return small_files(system, client, with, 4096, few); });
}

// ---- space ---------------------------------------------------------------------------------------------------------

std::uint64_t stored_bytes(const System& system) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(system.folder())) {
    struct stat found {};
    const std::string name = entry.path().filename();
    const bool is_data = name.find('.') != std::string::npos && entry.is_regular_file() &&
                         entry.path().string().find("/lfs") != std::string::npos && entry.path().extension() != ".mdb";
    if (is_data && stat(entry.path().c_str(), &found) == 0) bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
  return bytes;
}

// LFSs delete behind the answer: once nothing changes any more.
std::uint64_t settled_bytes(const System& system) {
  std::uint64_t bytes = stored_bytes(system);
  for (unsigned same = 0; same < 4;) {
    ::usleep(250'000);
    const std::uint64_t next = stored_bytes(system);
    same = next == bytes ? same + 1 : 0;
    bytes = next;
  }
  return bytes;
}

void bench_space(Context& c, const System& system, std::uint32_t length, double goal) {
  remove_all(system, {"/put"});
  const std::uint64_t before = settled_bytes(system);
  must_run(joined(system.command({"pif", "put", c.source, "/put"}),
                  joined(kParity, {"--record-length", std::to_string(length)})),
           &c.watch);
  ::sync();
  const auto bytes = static_cast<double>(settled_bytes(system) - before);
  c.report.add({fmt::format("stored bytes : data, records of {} bytes", length), fmt::format("{:.0f}", bytes),
                fmt::format("{}", c.options.bytes), bytes / static_cast<double>(c.options.bytes), goal, false, ""});
  remove_all(system, {"/put"});
}

// ---- a lost LFS ----------------------------------------------------------------------------------------------------

int pid_of(const System& system, const std::string& node) {
  Client client = connected(system);
  for (const Node& one : must(client.status()).nodes)
    if (one.name == node) return static_cast<int>(one.pid);
  die("no node " + node);
}

void lose(const System& system, const std::string& node) {
  kill(pid_of(system, node), SIGKILL);
  // The server counts the lease of a node that was heard just now: it says so, and is asked again.
  for (const double end = now() + 40; run(system.command({"pif", "node", "lost", node})).status != 0;) {
    if (now() > end) die(node + " cannot be declared lost");
    ::usleep(200'000);
  }
}

void bench_degraded_reads(Context& c, const System& system) {
  const std::string to = c.options.folder + "/got";
  const auto get = [&](const std::vector<std::string>& options) {
    std::vector<double> times;
    for (unsigned i = 0; i <= c.options.repeats; ++i) {
      unlink(to.c_str());
      ::sync();
      const double seconds = must_run(joined(system.command({"pif", "get", "/with", to}), options), &c.watch);
      if (i > 0) times.push_back(seconds);
    }
    return median(times);
  };
  touch_memory(c);
  const double healthy = get({}), healthy_messages = get({"--data", "messages"});
  lose(system, "lfs2");
  const double near = get({}), far = get({"--data", "messages"});
  must_hold(c, system, "/with", c.source);
  unlink(to.c_str());
  c.report.add(
      {"get with one LFS gone : healthy", seconds_text(near), seconds_text(healthy), healthy / near, 0.6, true, ""});
  c.report.add({"the same by message", seconds_text(far), seconds_text(healthy_messages), healthy_messages / far, 0.3,
                true, ""});
}

// ---- one keeper of parity stands still -----------------------------------------------------------------------------

// Eight clients that append single records to one file with parity, over four LFSs.
class Appenders {
 public:
  Appenders(const System& system, std::string path, const std::vector<std::uint32_t>& nodes) : path_(std::move(path)) {
    CreateOptions options;
    options.format = Format::fixed(100);
    options.nodes = nodes;
    options.bevy = 2;
    must(connected(system).create_empty(path_, options));
    for (unsigned i = 0; i < 8; ++i) threads_.emplace_back([this, &system] { append_all(system); });
  }
  ~Appenders() { stop(); }
  Appenders(const Appenders&) = delete;
  Appenders& operator=(const Appenders&) = delete;

  void stop() {
    is_over_ = true;
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  double rate_for(double seconds) const {
    const std::uint64_t before = appended_;
    const double begin = now();
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    return static_cast<double>(appended_ - before) / (now() - begin);
  }
  std::uint64_t appended() const { return appended_; }
  const std::string& path() const { return path_; }

 private:
  // Some fail while a keeper of theirs stands still.
  void append_all(const System& system) {
    Client client = must(Client::connect({.where = system.folder(), .timeout = std::chrono::seconds(3)}));
    File file = must(client.open(path_, Client::Mode::kWrite));
    const std::vector<std::byte> record(100, std::byte{7});
    while (!is_over_) appended_ += file.append(record) ? 1 : 0;
  }

  const std::string path_;
  std::atomic<bool> is_over_ = false;
  std::atomic<std::uint64_t> appended_ = 0;
  std::vector<std::thread> threads_;
};

std::vector<std::uint32_t> nodes_of(const System& system, unsigned first, unsigned count) {
  Client client = connected(system);
  std::map<std::string, std::uint32_t> ids;
  for (const Node& one : must(client.status()).nodes) ids[one.name] = one.id;
  std::vector<std::uint32_t> nodes;
  for (unsigned i = first; i < first + count; ++i) nodes.push_back(ids.at(fmt::format("lfs{}", i)));
  return nodes;
}

// It is stopped for less time than after which it is lost.
void bench_stopped_keeper(Context& c, const System& system) {
  const double seconds = c.options.smoke ? 0.2 : 3;
  Appenders with_it(system, "/stopped", nodes_of(system, 0, 4)), others(system, "/others", nodes_of(system, 4, 4));
  others.rate_for(seconds / 2);
  const double healthy = others.rate_for(seconds);
  const int keeper = pid_of(system, "lfs2");
  kill(keeper, SIGSTOP);
  const double meanwhile = others.rate_for(seconds);
  kill(keeper, SIGCONT);
  with_it.stop();
  others.stop();
  Client client = connected(system);
  File file = must(client.open(others.path(), Client::Mode::kRead));
  if (must(file.file_length()).records != others.appended()) die("an append is missing, or is there twice");
  c.report.add({"appends to a file while another's keeper is stopped", fmt::format("{:.0f}/s", meanwhile),
                fmt::format("{:.0f}/s", healthy), meanwhile / healthy, 0.9, true, ""});
  remove_all(system, {with_it.path(), others.path()});
}

void bench_rebuild(Context& c) {
  const std::uint64_t file_bytes = c.options.smoke ? 1u << 20 : 16u << 20;
  const unsigned files = c.options.smoke ? 4 : 128;  // 8 LFSs: 256 MiB of rows on each
  const System system(c.options, "rebuild", kLfss, kParity, c.watch);
  const std::string source = c.options.folder + "/one", folder = c.options.folder + "/cp";
  make_source(source, file_bytes);
  {
    Client client = connected(system);
    must(client.make_folder("/files"));
  }
  for (unsigned i = 0; i < files; ++i)
    must_run(system.command({"pif", "put", source, fmt::format("/files/{}", i)}), &c.watch);
  kill(pid_of(system, "lfs2"), SIGKILL);
  std::filesystem::remove_all(system.folder() + "/lfs2");
  must_run(system.command({"pif", "node", "replace", "lfs2"}));
  touch_memory(c);
  const double ours = must_run(system.command({"pif", "rebuild", "lfs2"}), &c.watch);
  std::filesystem::create_directories(folder + "/from");
  for (unsigned i = 0; i < files; ++i) make_source(fmt::format("{}/from/{}", folder, i), file_bytes / kLfss * 4 / 3);
  ::sync();
  const double cp = must_run({"sh", "-c", fmt::format("cp -r '{0}/from' '{0}/to' && sync", folder)});
  std::filesystem::remove_all(folder);
  for (const unsigned i : {0u, files / 2, files - 1}) must_hold(c, system, fmt::format("/files/{}", i), source);
  unlink(source.c_str());
  c.report.add(
      {"rebuild of an LFS : cp of as many bytes", seconds_text(ours), seconds_text(cp), cp / ours, 0.7, true, ""});
  c.report.add({"rebuild of 256 MiB and their parity, seconds", seconds_text(ours), "", ours, 1.5, false, ""});
}

}  // namespace

void bench_parity(Context& c) {
  {
    const System system(c.options, "parity", kLfss, {}, c.watch);
    bench_puts(c, system);
    bench_space(c, system, 65536, 1.36);
    bench_space(c, system, 100, 1.40);
    bench_reads(c, system);
    bench_tool(c, system, "pif-copy", {"pif-copy"});
    bench_small(c, system);
    bench_stopped_keeper(c, system);
    bench_degraded_reads(c, system);
  }
  bench_rebuild(c);
}

}  // namespace pif::bench
