// Histories of damage: a few files with parity, and one thing after another that a disk does to them. Clients never see
// a wrong byte; a scrub finds each damage, makes good what one damage has made, and nothing else.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/capability.h"
#include "pif/client/session.h"
#include "pif/wire/values.h"
#include "pif/wire/views.h"
#include "simulate/contents.h"
#include "simulate/damages.h"
#include "simulate/history.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kDamages = 40;       // in one history
constexpr unsigned kTwoPercent = 10;    // of them: two at once, on two LFSs
constexpr unsigned kEntryPercent = 10;  // of them: of a catalogue's entries
constexpr std::uint32_t kUp = 1;        // NodeInfo.state
constexpr Duration kScrubMax = 120s;    // until all have looked
constexpr Duration kMembersMax = 120s;
constexpr Duration kPatience = 10s;  // for one answer
constexpr std::uint64_t kStepsMax = 50'000'000;
constexpr std::uint64_t kBytesMax = 60'000;  // of one write
constexpr std::uint32_t kLineMax = 90;
constexpr Duration kCancelled = 10s;  // what nobody goes on with
constexpr Duration kForgotten = 30s;  // that an LFS did not answer
constexpr std::int64_t kCapabilitySeconds = 600;

struct Known {
  std::string path;
  Format format;
  Bytes bytes;
  std::vector<std::uint32_t> lengths;  // of lines
  std::uint64_t id = 0;
};

struct Pass {
  std::uint64_t found = 0, repaired = 0;
  std::string texts;
};

class DamagesHistory {
 public:
  DamagesHistory(std::uint64_t seed, const std::function<void(const std::string&)>& tell)
      : seed_(seed),
        tell_(tell),
        dice_(seed ^ 0x64616d61676573),
        bevy_(dice_.chance(60)   ? 2
              : dice_.chance(60) ? 3
                                 : 4),
        world_(seed, options()),
        cluster_(world_, 2 * bevy_, {true, 64u << 20, bevy_, false, false, dice_.chance(30)}),
        damages_(cluster_, dice_) {}

  Outcome judge();

 private:
  static sim::Options options() {
    sim::Options out;
    out.steps_max = kStepsMax;
    return out;
  }
  void live(sim::Actor& self);
  [[nodiscard]] bool connect();
  [[nodiscard]] bool prepare();
  void tell_length(const Known& file);
  [[nodiscard]] bool put(Known& file);
  [[nodiscard]] bool append(Known& file);
  [[nodiscard]] bool append_by_one_who_dies(Known& file);
  CreateOptions options_of(const Known& file);
  Known some_bytes(const Format& format);
  [[nodiscard]] Status write_to(File& file, const Known& part);

  // What clients see. may_fail: a damage is not repaired yet, and errors may say so.
  void read_all(const char* when, bool may_fail);
  Result<Bytes> read(const Known& file);
  // Each LFS in turn is not there: what others keep of it serves.
  void read_without(unsigned lfs, const char* when);
  void read_without_each(const char* when);

  [[nodiscard]] bool await_members(const char* when);
  Pass scrub(const char* when);
  [[nodiscard]] bool look(const proto::NodeInfo& node, Pass& pass, const char* when);
  std::string capability();

  void strike_one();
  void strike_two();
  void strike_entry();
  void check_files(const char* when);
  // Where two damages meet nothing may have changed that is not as it was before the first.
  void check_untouched(const Image& image, const Image& hurt);

  void say(const std::string& line) const {
    if (tell_) tell_(line);
  }
  void accuse(const std::string& text) {
    say("WRONG: " + text);
    out_.violations.push_back(fmt::format("damage {}: {}{}", out_.damages, text, said_));
  }

  const std::uint64_t seed_;
  const std::function<void(const std::string&)>& tell_;
  Dice dice_;
  const std::uint32_t bevy_;
  sim::World world_;
  sim::Cluster cluster_;
  Damages damages_;
  std::vector<Known> files_;
  std::uint64_t stamps_ = 0;
  Image image_;
  Outcome out_;
  std::string said_;  // of the damage under way

  sim::Actor* self_ = nullptr;
  std::optional<sim::ClientSide> side_;
  std::optional<Client> client_;
};

// ---- files ---------------------------------------------------------------------------------------------------------

bool DamagesHistory::connect() {
  ConnectOptions options;
  options.route = dice_.chance(50) ? "auto" : "ipc";
  options.data_path = options.route == "auto" && dice_.chance(60) ? DataPath::kAuto : DataPath::kMessages;
  client_.reset();
  for (int i = 0; i < 50 && self_->pause(200ms); ++i) {
    auto made = Client::connect_in(side_->world(), sim::Cluster::kServer, options);
    if (!made) continue;
    client_.emplace(std::move(*made));
    return true;
  }
  accuse("nobody can connect");
  return false;
}

CreateOptions DamagesHistory::options_of(const Known& file) {
  CreateOptions options;
  options.format = file.format;
  options.is_small = dice_.chance(25);
  return options;
}

// Records of a file that may end with a short one.
Known DamagesHistory::some_bytes(const Format& format) {
  Known part{{}, format, {}, {}, 0};
  const std::uint64_t records = dice_.chance(30) ? dice_.from_to(1, 5) : dice_.from_to(20, 200);
  if (format.is_fixed()) {
    const std::uint64_t length = format.record_length;
    const std::uint64_t count = std::clamp<std::uint64_t>(kBytesMax / length, 1, records);
    part.bytes = stamped_bytes(++stamps_, count * length - (dice_.chance(40) ? dice_.below(length) : 0));
    return part;
  }
  for (std::uint64_t i = 0; i < records; ++i)
    part.lengths.push_back(static_cast<std::uint32_t>(i == 0 ? kStampLine : dice_.from_to(1, kLineMax)));
  part.bytes = stamped_lines(++stamps_, part.lengths);
  return part;
}

Status DamagesHistory::write_to(File& file, const Known& part) {
  return part.format.is_fixed() ? file.write(part.bytes) : file.write_batch(part.lengths, part.bytes);
}

void DamagesHistory::tell_length(const Known& file) {
  const std::uint64_t length = file.format.record_length;
  const bool is_fixed = file.format.is_fixed();
  const std::uint64_t whole = is_fixed ? file.bytes.size() / length : file.lengths.size();
  damages_.know(FileId(file.id), file.format, is_fixed ? (file.bytes.size() + length - 1) / length : whole, whole);
}

bool DamagesHistory::put(Known& file) {
  auto made = client_->create(file.path, options_of(file));
  const Status done = made ? write_to(*made, file).and_then([&] { return made->commit(); }) : fail(made.error());
  if (!done) accuse(fmt::format("put {}: {}", file.path, done.error().to_string()));
  if (done) file.id = made->id();
  if (done) tell_length(file);
  return done.has_value();
}

bool DamagesHistory::append(Known& file) {
  const Known part = some_bytes(file.format);
  auto opened = client_->open(file.path, Client::Mode::kWrite);
  Status done = opened ? Status() : fail(opened.error());
  if (done && file.format.is_fixed()) {
    if (const auto at = opened->append_bytes(part.bytes); !at) done = fail(at.error());
  } else if (done) {
    if (const auto at = opened->append_batch(part.lengths, part.bytes); !at) done = fail(at.error());
  }
  if (!done) accuse(fmt::format("append to {}: {}", file.path, done.error().to_string()));
  file.bytes.insert(file.bytes.end(), part.bytes.begin(), part.bytes.end());
  file.lengths.insert(file.lengths.end(), part.lengths.begin(), part.lengths.end());
  tell_length(file);
  return done.has_value();
}

// What was appended then is there as a whole, or was cancelled: its copies are not.
bool DamagesHistory::append_by_one_who_dies(Known& file) {
  const Known part = some_bytes(file.format);
  const sim::ActorId other = world_.spawn("other", [&](sim::Actor& self) {
    sim::ClientSide side(self);
    auto client = Client::connect_in(side.world(), sim::Cluster::kServer, {});
    if (!client) return;
    auto opened = client->open(file.path, Client::Mode::kWrite);
    if (!opened) return;
    if (file.format.is_fixed())
      (void)opened->append_bytes(part.bytes);
    else
      (void)opened->append_batch(part.lengths, part.bytes);
  });
  self_->pause(Duration(std::chrono::microseconds(dice_.from_to(2'000, 40'000))));
  if (world_.is_alive(other)) world_.kill(other);
  self_->pause(kCancelled);
  auto opened = client_->open(file.path);
  const auto length = opened ? opened->file_length() : fail(opened.error());
  if (!length) accuse(fmt::format("open {}: {}", file.path, length.error().to_string()));
  if (!length || length->bytes == file.bytes.size()) return length.has_value();
  file.bytes.insert(file.bytes.end(), part.bytes.begin(), part.bytes.end());
  file.lengths.insert(file.lengths.end(), part.lengths.begin(), part.lengths.end());
  tell_length(file);
  return true;
}

// All kinds of records, some of them in frames, others in pages that were folded.
bool DamagesHistory::prepare() {
  constexpr std::uint32_t kLengths[] = {0, 16, 100, 500, 1000, 4096, 5000};
  if (!client_->status(cluster_.size())) {
    accuse("the LFSs do not come up");
    return false;
  }
  for (unsigned i = 0, count = static_cast<unsigned>(dice_.from_to(1, 3)); i < count; ++i) {
    const std::uint32_t length = kLengths[dice_.below(std::size(kLengths))];
    files_.push_back(some_bytes(length == 0 ? Format::lines() : Format::fixed(length)));
    files_.back().path = fmt::format("/f{}", i);
    if (!put(files_.back())) return false;
  }
  damages_.remember(damages_.take());
  for (auto appends = dice_.below(6); appends > 0; --appends) {
    Known& file = files_[dice_.below(files_.size())];
    if (dice_.chance(40) && !append_by_one_who_dies(file)) return false;
    if (!append(file)) return false;
    self_->pause(dice_.chance(50) ? Duration(5s) : Duration(10ms));
    damages_.remember(damages_.take());
  }
  return self_->pause(30s);
}

// ---- reading -------------------------------------------------------------------------------------------------------

Result<Bytes> DamagesHistory::read(const Known& file) {
  PIF_TRY_VALUE(File opened, client_->open(file.path));
  PIF_TRY_VALUE(const FileLength length, opened.file_length());
  if (length.bytes != file.bytes.size())
    accuse(fmt::format("{} has {} bytes instead of {}", file.path, length.bytes, file.bytes.size()));
  Bytes bytes(length.bytes);
  if (file.format.is_fixed()) {
    PIF_TRY_VALUE(const std::size_t got, opened.pread(bytes, 0));
    bytes.resize(got);
    return bytes;
  }
  PIF_TRY_VALUE(RecordBatch batch, opened.read_batch_at(0, length.records));
  if (batch.lengths != file.lengths) accuse(file.path + " has other lines");
  return std::move(batch.data);
}

void DamagesHistory::read_all(const char* when, bool may_fail) {
  for (const Known& file : files_) {
    ++out_.operations;
    const auto bytes = read(file);
    if (bytes) {
      out_.records += file.lengths.size() + (file.format.is_fixed() ? bytes->size() / file.format.record_length : 0);
      if (*bytes != file.bytes) accuse(fmt::format("{}: {} has other bytes", when, file.path));
      continue;
    }
    ++out_.failed;
    say(fmt::format("{}: {}: {}", when, file.path, bytes.error().to_string()));
    if (!may_fail) accuse(fmt::format("{}: read {}: {}", when, file.path, bytes.error().to_string()));
  }
}

void DamagesHistory::read_without(unsigned lfs, const char* when) {
  cluster_.kill_lfs(lfs);
  if (!connect()) return;
  read_all(when, false);
  cluster_.restart_lfs(lfs);
  if (await_members(when)) self_->pause(kForgotten);
}

void DamagesHistory::read_without_each(const char* when) {
  for (unsigned lfs = 0; lfs < cluster_.size() && out_.violations.empty(); ++lfs) read_without(lfs, when);
}

// ---- scrubbing -----------------------------------------------------------------------------------------------------

std::string DamagesHistory::capability() {
  auto& session = client_->session();
  const std::int64_t until = session.clock().wall_seconds() + kCapabilitySeconds;
  return mint(cluster_.key(), Capability{FileId(0), session.uid(), kMayManage, 0, until});
}

bool DamagesHistory::await_members(const char* when) {
  const auto is_member = [](const proto::NodeInfo& node) {
    return node.state() == kUp && node.view_state() == wire::kViewMember;
  };
  for (const Time end = world_.now() + kMembersMax; world_.now() < end;) {
    const auto nodes = client_->session().call(proto::Nodes(), kPatience);
    if (nodes && std::all_of(nodes->nodes().begin(), nodes->nodes().end(), is_member))
      return self_->pause(kForgotten) && connect();
    if (!self_->pause(200ms)) return false;
  }
  accuse(fmt::format("{}: not all are members", when));
  return false;
}

bool DamagesHistory::look(const proto::NodeInfo& node, Pass& pass, const char* when) {
  for (const Time end = world_.now() + kScrubMax; world_.now() < end;) {
    const auto status = client_->session().call(node, proto::ScrubStatus(), capability(), kPatience);
    if (status && !status->is_running()) {
      pass.found += status->found();
      pass.repaired += status->repaired();
      for (const auto& damage : status->damages()) {
        pass.texts += fmt::format("\n    {}: {}", node.name(), damage.text());
        if (damage.file() == 0 && pass.found == pass.repaired) pass.texts += " (not compared)";
      }
      return true;
    }
    if (!self_->pause(20ms)) return false;
  }
  accuse(fmt::format("{}: the scrub of {} does not end", when, node.name()));
  return false;
}

// All LFSs at once.
Pass DamagesHistory::scrub(const char* when) {
  Pass pass;
  const auto nodes = client_->session().call(proto::Nodes(), kPatience);
  if (!nodes) {
    accuse(fmt::format("{}: {}", when, nodes.error().to_string()));
    return pass;
  }
  for (const auto& node : nodes->nodes())
    if (const auto asked = client_->session().call(node, proto::Scrub(), capability(), kPatience); !asked)
      accuse(fmt::format("{}: scrub of {}: {}", when, node.name(), asked.error().to_string()));
  for (const auto& node : nodes->nodes())
    if (!look(node, pass, when)) break;
  say(fmt::format("{}: {} found, {} repaired{}", when, pass.found, pass.repaired, pass.texts));
  return pass;
}

// ---- damage --------------------------------------------------------------------------------------------------------

void DamagesHistory::check_files(const char* when) {
  std::string where;
  if (differs(image_, damages_.take(), where)) accuse(fmt::format("{}: {} is not as it was", when, where));
}

// One damage: found, made good, and nothing is left of it.
void DamagesHistory::strike_one() {
  const Damage damage = damages_.strike(image_, true);
  const bool is_of_frames = has_frames(damage.path) || damage.what.find(".pap") != std::string::npos;
  said_ = fmt::format(" ({}: {})", damage.path, damage.what);
  say("damage" + said_);
  std::string where;
  const bool is_used = differs(image_, damages_.take(), where);
  if (!damage.is_hidden) read_all("with a damage", true);
  const Pass first = scrub("with a damage");
  out_.found += first.found;
  out_.repaired += first.repaired;
  if (first.repaired != first.found && (is_used || is_of_frames)) accuse("it is not repaired:" + first.texts);
  if (first.found == 0 && is_used) accuse("it is not found");
  if (const Pass second = scrub("again"); second.found > 0 && first.repaired == first.found)
    accuse("a second pass finds more:" + second.texts);
  check_files("after the repair");
  read_all("after the repair", false);
  // Rows that were cancelled are looked at, too, and nobody has others of them.
  if (first.repaired != first.found && !is_of_frames) damages_.put_back(image_);
  if (is_of_frames) read_without_each("after the repair of copies");
  image_ = damages_.take();
}

void DamagesHistory::check_untouched(const Image& image, const Image& hurt) {
  const Image now = damages_.take();
  for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs) {
    for (const auto& [path, bytes] : now.files[lfs]) {
      if (has_frames(path)) continue;
      const auto before = image.files[lfs].find(path);  // an empty one may have been made since
      const Bytes was = before == image.files[lfs].end() ? Bytes() : before->second;
      const auto found = hurt.files[lfs].find(path);
      const Bytes bad = found == hurt.files[lfs].end() ? Bytes() : found->second;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const bool is_right = i < was.size() && bytes[i] == was[i];
        if (is_right || (i < bad.size() ? bytes[i] == bad[i] : bytes[i] == std::byte{0})) continue;
        accuse(fmt::format("byte {} of {} is neither right nor what the damage made it", i, path));
        break;
      }
    }
  }
}

// Two on two LFSs, which may meet in one group: then both stay, and are told of. No row whose sum holds is one of them:
// if its parity is gone, too, nobody can tell.
void DamagesHistory::strike_two() {
  const Damage one = damages_.strike(image_, false);
  const Damage two = damages_.strike(damages_.take(), false, one.lfs);
  said_ = fmt::format(" ({}: {}; {}: {})", one.path, one.what, two.path, two.what);
  say("two damages" + said_);
  const Image hurt = damages_.take();
  std::string where;
  const bool is_used = differs(image_, hurt, where);
  read_all("with two damages", true);
  Pass pass = scrub("with two damages");
  out_.found += pass.found;
  out_.repaired += pass.repaired;
  if (pass.found == 0 && is_used) accuse("they are not found");
  read_all("after the scrub", true);
  check_untouched(image_, hurt);
  if (pass.found != pass.repaired && scrub("again").found == 0) accuse("what was not repaired is not found again");
  // What could not be repaired is put back by hand; those who know where copies are start anew.
  for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs) cluster_.kill_lfs(lfs);
  damages_.put_back(image_);
  for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs) cluster_.restart_lfs(lfs);
  if (!await_members("after two damages")) return;
  if (pass = scrub("put back"); pass.found > 0) accuse("what was put back is not whole:" + pass.texts);
  read_all("put back", false);
  image_ = damages_.take();
}

// Its LFS says so, has the others' parity to read from meanwhile, and makes the component anew.
void DamagesHistory::strike_entry() {
  const auto lfs = static_cast<unsigned>(dice_.below(cluster_.size()));
  if (image_.entries[lfs].empty()) return;
  cluster_.kill_lfs(lfs);
  const Damage damage = damages_.strike_entry(image_, lfs);
  said_ = fmt::format(" (an entry of lfs{}'s catalogue: {})", lfs, damage.what);
  say("damage" + said_);
  cluster_.restart_lfs(lfs);
  if (!await_members("with a damaged entry")) return;
  read_all("with a damaged entry", false);
  const Pass pass = scrub("with a damaged entry");
  out_.found += pass.found;
  out_.repaired += pass.repaired;
  if (pass.found == 0 && !damage.is_lost) accuse("it is not found");  // it may have had only what was cancelled
  if (pass.repaired != pass.found) accuse("it is not repaired:" + pass.texts);
  read_all("after the scrub", false);
  cluster_.kill_lfs(lfs);
  if (!connect()) return;
  read_all("without the LFS", false);
  cluster_.restart_lfs(lfs);
  if (!await_members("after a damaged entry")) return;
  if (const Pass last = scrub("made anew"); last.found > 0) accuse("what was made anew is not whole:" + last.texts);
  read_all("made anew", false);
  read_without((lfs + 1 + static_cast<unsigned>(dice_.below(cluster_.size() - 1))) % cluster_.size(), "made anew");
  image_ = damages_.take();
}

// ---- the history ---------------------------------------------------------------------------------------------------

void DamagesHistory::live(sim::Actor& self) {
  self_ = &self;
  side_.emplace(self);
  if (!connect() || !prepare()) return;
  if (const Pass pass = scrub("before"); pass.found > 0) accuse("a scrub finds something before:" + pass.texts);
  read_all("before", false);
  image_ = damages_.take();
  while (out_.damages < kDamages && out_.violations.empty()) {
    ++out_.damages;
    const auto how = dice_.below(100);
    if (how < kTwoPercent)
      strike_two();
    else if (how < kTwoPercent + kEntryPercent)
      strike_entry();
    else
      strike_one();
  }
  said_.clear();
  if (out_.violations.empty()) read_without_each("at the end");
  client_.reset();
}

Outcome DamagesHistory::judge() {
  try {
    world_.spawn_main("client", [this](sim::Actor& self) { live(self); });
    world_.run();
  } catch (const std::exception& failure) {
    accuse(failure.what());
  }
  world_.kill_all();
  for (unsigned lfs = 0; lfs < cluster_.size() && out_.violations.empty(); ++lfs) {
    const auto disk = cluster_.open_disk(lfs);
    const auto catalogue = cluster_.open_catalogue(lfs);
    const auto report = lfs::check_root(*disk, *catalogue, cluster_.root(lfs), true);
    if (!report) accuse(report.error().to_string());
    if (report && !report->damages.empty()) accuse(fmt::format("lfs{}: {}", lfs, report->damages.front()));
  }
  if (!cluster_.last_words().empty()) accuse(cluster_.last_words());
  out_.hash = world_.history();
  out_.steps = world_.steps();
  return std::move(out_);
}

}  // namespace

Outcome run_damages_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  set_assertion_handler([](const BrokenAssertion& broken) { throw std::logic_error(broken.to_string()); });
  return DamagesHistory(seed, tell).judge();
}

}  // namespace pif::simulate
