#include "sim/faults.h"

#include <utility>

#include <fmt/format.h>

namespace pif::sim {

void Faults::cut_power_at(std::uint64_t calls, bool only_durable, std::function<void()> cut) {
  cut_at_ = calls;
  cut_only_durable_ = only_durable;
  cut_ = std::move(cut);
}

void Faults::fail_at(std::uint64_t calls, Fault fault, bool sticky, Which which) {
  which_ = std::move(which);
  fail_at_ = calls;
  fail_count_ = 0;
  fault_ = fault;
  sticky_ = sticky;
}

void Faults::heal() {
  fail_at_ = UINT64_MAX;
  cut_at_ = UINT64_MAX;
  failed_ = false;
}

void Faults::revive() {
  dead_ = false;
  cut_at_ = UINT64_MAX;
}

Code Faults::code_of(Fault fault, std::string_view call) {
  const bool reads = call == "read", writes = call == "write";
  const bool grows = writes || call == "resize" || call == "open" || call == "make_folder" || call == "kv.commit";
  switch (fault) {
    case Fault::kIoError: return Code::kIo;
    case Fault::kNoSpace: return grows ? Code::kNoSpace : Code::kOk;
    case Fault::kShort: return reads ? Code::kEndOfFile : writes ? Code::kIo : Code::kOk;
  }
  return Code::kIo;
}

// Whether this is the call at which the power goes.
bool Faults::cuts(std::string_view call) {
  if (cut_at_ == UINT64_MAX) return false;
  if (cut_only_durable_ && call != "sync" && call != "sync_folder" && call != "kv.commit") return false;
  if (cut_at_ > 0) {
    --cut_at_;
    return false;
  }
  cut_at_ = UINT64_MAX;
  return true;
}

Code Faults::ask(std::string_view call, std::string_view path) {
  if (dead_) return Code::kIo;
  if (call == "read_cached") return is_cold_ && is_cold_() ? Code::kIo : Code::kOk;
  if (cuts(call)) {
    dead_ = true;
    if (const auto cut = std::exchange(cut_, nullptr)) cut();
    return Code::kIo;
  }
  if (fail_at_ == UINT64_MAX) return Code::kOk;
  const Code code = code_of(fault_, call);
  if (code == Code::kOk || (which_ && !which_(call, path))) return Code::kOk;
  const auto number = fail_count_++;
  if (number < fail_at_ || (number > fail_at_ && !sticky_)) return Code::kOk;
  if (!failed_) failed_call_ = fmt::format("{} {}", call, path);
  failed_ = true;
  return code;
}

namespace {

using Commits = std::function<bool()>;

// What store and transaction share.
struct Context {
  std::string name;
  std::shared_ptr<Faults> faults;
  Commits commits;

  Status failed(Code code, std::string_view call) const {
    if (code == Code::kOk) return {};
    return fail(code, fmt::format("{} in {}: {}", call, name, code_name(code)));
  }
  Status ask(std::string_view call) const { return failed(faults->ask(call, name), call); }
};

class FaultyTransaction final : public kv::Transaction {
 public:
  FaultyTransaction(std::unique_ptr<kv::Transaction> inner, const Context& context)
      : inner_(std::move(inner)), context_(context) {}

  Result<std::optional<std::string_view>> get(kv::Table table, std::string_view key) override {
    PIF_TRY(context_.ask("kv.get"));
    return inner_->get(table, key);
  }
  Status put(kv::Table table, std::string_view key, std::string_view value) override {
    PIF_TRY(context_.ask("kv.put"));
    return inner_->put(table, key, value);
  }
  Status erase(kv::Table table, std::string_view key) override {
    PIF_TRY(context_.ask("kv.put"));
    return inner_->erase(table, key);
  }
  Status scan(kv::Table table, std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& visit) override {
    PIF_TRY(context_.ask("kv.scan"));
    return inner_->scan(table, from, visit);
  }
  Result<std::uint64_t> count(kv::Table table) override { return inner_->count(table); }
  Status commit() override {
    Faults& faults = *context_.faults;
    const bool was_dead = faults.is_dead();
    const Code code = faults.ask("kv.commit", context_.name);
    if (code != Code::kOk && !was_dead && faults.is_dead() && context_.commits()) (void)inner_->commit();
    PIF_TRY(context_.failed(code, "kv.commit"));
    return inner_->commit();
  }

 private:
  std::unique_ptr<kv::Transaction> inner_;
  const Context& context_;
};

class FaultyStore final : public kv::Store {
 public:
  FaultyStore(std::unique_ptr<kv::Store> inner, Context context)
      : inner_(std::move(inner)), context_(std::move(context)) {}

  Result<std::unique_ptr<kv::Transaction>> read() override {
    PIF_TRY(context_.ask("kv.read"));
    return wrapped(inner_->read());
  }
  Result<std::unique_ptr<kv::Transaction>> write() override {
    PIF_TRY(context_.ask("kv.write"));
    return wrapped(inner_->write());
  }

 private:
  Result<std::unique_ptr<kv::Transaction>> wrapped(Result<std::unique_ptr<kv::Transaction>> made) {
    if (!made) return made;
    return std::make_unique<FaultyTransaction>(std::move(*made), context_);
  }

  std::unique_ptr<kv::Store> inner_;
  const Context context_;
};

}  // namespace

std::unique_ptr<kv::Store> make_faulty_store(std::string name, std::unique_ptr<kv::Store> inner,
                                             std::shared_ptr<Faults> faults, std::function<bool()> commits_before_cut) {
  return std::make_unique<FaultyStore>(std::move(inner),
                                       Context{std::move(name), std::move(faults), std::move(commits_before_cut)});
}

}  // namespace pif::sim
