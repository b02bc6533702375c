#include "context/sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "pif/base/assert.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::size_t kProgramBytesKept = 200;  // of a name
constexpr std::size_t kEvictedAtOnce = 64;      // so that it is rare to look for them

bool tells_loss(const net::Identity& identity) {
  return identity.via == net::Identity::Via::kUnix || identity.via == net::Identity::Via::kSimulated;
}

// No character is cut in two: a message with text that is not UTF-8 is not understood.
std::string cut(const std::string& text, std::size_t bytes_max) {
  std::size_t size = std::min(text.size(), bytes_max);
  while (size > 0 && size < text.size() && (text[size] & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

void add_once(std::vector<Session*>& list, Session* session) {
  if (std::find(list.begin(), list.end(), session) == list.end()) list.push_back(session);
}

}  // namespace

const Answer* Session::answer_to(std::uint64_t request) const {
  for (auto answer = answers.rbegin(); answer != answers.rend(); ++answer) {
    if (answer->request == request) return &*answer;
  }
  return nullptr;
}

bool Session::counts(std::uint64_t request) {
  if (std::find(counted.rbegin(), counted.rend(), request) != counted.rend()) return false;
  counted.push_back(request);
  if (counted.size() > kCountedKept) counted.pop_front();
  return true;
}

Requester Sessions::requester(std::uint32_t uid, std::vector<std::uint32_t> gids) const {
  if (gids.empty()) gids.push_back(uid);
  if (gids.size() > kGroupsMax + 1) gids.resize(kGroupsMax + 1);
  return {uid, std::move(gids), uid == 0 || uid == config_.owner_uid};
}

void Sessions::note_contact(const Peer& peer, Session& session, Time now) const {
  if (!peer.tells_loss) {
    session.last_heard = now;
    session.probe = now + kProbeEvery;
  }
  session.ends = kNever;
}

Result<Session*> Sessions::of(net::PeerId peer, const std::string& credential, const net::Identity& identity, Time now,
                              std::int64_t wall) {
  const auto known = peers_.find(peer);
  const bool same = known != peers_.end() && known->second.session != nullptr;
  if (same && credential.empty() && identity.has_uid) {
    note_contact(known->second, *known->second.session, now);
    return known->second.session;
  }
  if (same && !credential.empty() && known->second.credential == credential && wall <= known->second.expiry &&
      (identity.has_uid || known->second.keys_version == config_.key.version())) {
    note_contact(known->second, *known->second.session, now);
    return known->second.session;
  }
  if (credential.empty()) {
    return fail(Code::kBadCapability, "the request says nothing of who asks: say Hello first, and send the credential");
  }
  PIF_TRY_VALUE(const Credential verified, verify_credential(config_.key, credential, wall));
  if (identity.has_uid && identity.uid != verified.uid && identity.uid != 0) {
    return fail(Code::kPermission, fmt::format("uid {} sent the credential of uid {}", identity.uid, verified.uid));
  }
  PIF_TRY_VALUE(Session * session, resume(verified, now));
  attach(peer, identity, *session, credential, verified.expiry, now);
  return session;
}

Result<Session*> Sessions::hello(net::PeerId peer, const proto::Envelope& request, const net::Identity& identity,
                                 Time now, std::int64_t wall, proto::HelloReply& reply) {
  Session* session = nullptr;
  if (!request.credential().empty()) {
    // Whom the connection vouches for may come back with one that has expired, as after a suspend of weeks.
    auto verified = verify_credential(config_.key, request.credential(), identity.has_uid ? 0 : wall);
    if (!verified && !identity.has_uid) return fail(std::move(verified.error()));
    if (verified && (!identity.has_uid || identity.uid == verified->uid)) {
      PIF_TRY_VALUE(session, resume(*verified, now));
    }
  }
  if (session == nullptr && identity.has_uid) session = greeted(peer, identity.uid);
  if (session == nullptr) {
    if (!identity.has_uid) {
      return fail(
          Code::kPermission,
          "this connection does not say who you are: say Hello over the server's Unix socket (or CURVE) first, and "
          "send the credential you get there");
    }
    std::uint64_t id = 0;
    while (id == 0 || sessions_.contains(id)) id = entropy_.next();
    PIF_TRY_VALUE(session, add(id, requester(identity.uid, identity.gids), now));
    session->answers_loaded = true;  // there are none
  }
  PIF_ASSERT(!identity.has_uid || session->who.uid == identity.uid, session->who.uid, identity.uid);
  session->program = cut(request.hello().program(), kProgramBytesKept);
  const std::int64_t expiry = wall + kCredentialSeconds;
  std::vector<std::uint32_t> gids = session->who.gids;
  std::string credential =
      mint(config_.key, Credential{SessionId(session->id), session->who.uid, std::move(gids), expiry});
  attach(peer, identity, *session, credential, expiry, now);
  reply.set_credential(std::move(credential));
  reply.set_session(session->id);
  reply.set_uid(session->who.uid);
  return session;
}

// The session of a connection that says Hello again. Over ZeroMQ another program may have come to the peer's name.
Session* Sessions::greeted(net::PeerId peer, std::uint32_t uid) const {
  const auto known = peers_.find(peer);
  if (known == peers_.end() || !known->second.tells_loss) return nullptr;
  Session* session = known->second.session;
  return session != nullptr && session->who.uid == uid ? session : nullptr;
}

void Sessions::attach(net::PeerId peer, const net::Identity& identity, Session& session, const std::string& credential,
                      std::int64_t expiry, Time now) {
  const auto [at, is_new] = peers_.try_emplace(peer);
  Peer& known = at->second;
  // For good: of a peer that is gone, and whose last request is handled late, the transport knows nothing any more.
  if (is_new) known.tells_loss = tells_loss(identity);
  if (known.session != &session) {
    if (known.session != nullptr) {  // another session from the same peer: it has left the first
      const std::size_t erased = known.session->peers.erase(peer);
      PIF_ASSERT(erased == 1 && (!known.tells_loss || known.session->connections > 0), peer, known.session->id);
      if (known.tells_loss) --known.session->connections;
      if (known.session->connections == 0) known.session->last_heard = now;
    }
    known.session = &session;
    session.peers.insert(peer);
    if (known.tells_loss) ++session.connections;
    PIF_ASSERT(session.connections <= session.peers.size(), session.connections, session.peers.size());
  }
  known.credential = credential;
  known.expiry = expiry;
  known.keys_version = config_.key.version();
  note_contact(known, session, now);
}

Result<Session*> Sessions::resume(const Credential& credential, Time now) {
  // LFSs and the server mint such credentials for one another: whoever got hold of one must not share a session by it.
  if (credential.session.value == 0)
    return fail(Code::kBadCapability, "the credential is not of a session of this server");
  if (Session* session = find(credential.session.value)) {
    if (session->who.uid != credential.uid)
      return fail(Code::kPermission,
                  fmt::format("the session is of uid {}, the credential of uid {}", session->who.uid, credential.uid));
    // A creator of whom only a pending file was known gets its rights from the credential.
    if (session->peers.empty()) session->who = requester(credential.uid, credential.gids);
    session->ends = kNever;
    PIF_TRY(load_answers(*session));
    return session;
  }
  PIF_TRY_VALUE(Session * session, add(credential.session.value, requester(credential.uid, credential.gids), now));
  if (auto loaded = load_answers(*session); !loaded) {
    forget(sessions_.find(credential.session.value));
    return fail(std::move(loaded.error()));
  }
  return session;
}

Result<Session*> Sessions::add(std::uint64_t id, Requester who, Time now) {
  if (const auto theirs = of_user_.find(who.uid);
      !who.all_powerful && theirs != of_user_.end() && theirs->second >= kSessionsPerUserMax && !evict(who.uid)) {
    return fail(Code::kBusy,
                fmt::format("uid {} has {} sessions, the limit of one user: end some programs, or try again later",
                            who.uid, theirs->second));
  }
  if (sessions_.size() >= kSessionsMax && !evict_of_many()) {
    return fail(Code::kBusy, fmt::format("the server has {} sessions, its limit: try again later", sessions_.size()));
  }
  return &insert(id, std::move(who), now);
}

bool Sessions::evict(std::uint32_t uid) {
  std::vector<ById::iterator> idle;
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    const Session& session = *at->second;
    if (session.who.uid == uid && session.connections == 0 && !session.keeps_something() &&
        opens_.count_of(session.id) == 0 && !groups_.is_in_use(session.id))
      idle.push_back(at);
  }
  const auto longest = [](const auto& a, const auto& b) { return a->second->last_heard < b->second->last_heard; };
  const auto end = idle.begin() + static_cast<std::ptrdiff_t>(std::min(idle.size(), kEvictedAtOnce));
  std::partial_sort(idle.begin(), end, idle.end(), longest);
  for (auto at = idle.begin(); at != end; ++at) forget(*at);
  return !idle.empty();
}

bool Sessions::evict_of_many() {
  std::vector<std::pair<std::size_t, std::uint32_t>> users;
  for (const auto& [uid, count] : of_user_) users.emplace_back(count, uid);
  std::sort(users.rbegin(), users.rend());
  return std::any_of(users.begin(), users.end(), [this](const auto& user) { return evict(user.second); });
}

Session& Sessions::insert(std::uint64_t id, Requester who, Time now) {
  auto session = std::make_unique<Session>();
  session->id = id;
  session->who = std::move(who);
  session->last_heard = now;
  session->creating.insert(shared_.files_of(id).begin(), shared_.files_of(id).end());
  shared_.session_known(id);
  ++of_user_[session->who.uid];
  const auto [at, is_new] = sessions_.emplace(id, std::move(session));
  PIF_ASSERT(is_new, id);
  return *at->second;
}

Sessions::ById::iterator Sessions::forget(ById::iterator at) {
  const Session& session = *at->second;
  for (const net::PeerId peer : session.peers) {
    const std::size_t erased = peers_.erase(peer);
    PIF_ASSERT(erased == 1, peer, session.id);
  }
  const auto theirs = of_user_.find(session.who.uid);
  PIF_ASSERT(theirs != of_user_.end() && theirs->second > 0, session.who.uid);
  if (--theirs->second == 0) of_user_.erase(theirs);
  shared_.session_forgotten(session.id);
  return sessions_.erase(at);
}

Session& Sessions::absent(std::uint64_t id, std::uint32_t uid, Time now) {
  if (Session* known = find(id)) return *known;
  Session& session = insert(id, requester(uid, {}), now);
  session.ends = now + kAbortGrace;
  return session;
}

Session* Sessions::find(std::uint64_t id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

Session* Sessions::closed(net::PeerId peer, Time now) {
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return nullptr;
  Session* session = known->second.session;
  const bool counted = known->second.tells_loss;
  peers_.erase(known);
  if (session == nullptr) return nullptr;
  const std::size_t erased = session->peers.erase(peer);
  PIF_ASSERT(erased == 1 && (!counted || session->connections > 0), peer, session->id, session->connections);
  if (counted) --session->connections;
  const bool heard_elsewhere = !session->peers.empty() && session->last_heard + kSilentSession > now;
  if (heard_elsewhere) session->probe = now;  // all of its program may be gone
  if (session->connections > 0 || heard_elsewhere || session->has_ended()) return nullptr;
  session->ends = session->keeps_something() ? now + kAbortGrace : now;
  return session;
}

void Sessions::sweep(Time now, const std::function<void(Session&)>& ended, const std::function<void(Session&)>& gone) {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = *at->second;
    if (!session.has_ended() && session.connections == 0 && session.last_heard + kSilentSession <= now) {
      session.ends = session.keeps_something() ? now + kAbortGrace : now;
      ended(session);
    }
    if (session.ends > now) {
      ++at;
      continue;
    }
    gone(session);
    at = forget(at);
  }
}

void Sessions::probe_silent(Time now, const std::function<void(net::PeerId)>& probe) {
  for (auto& [id, session] : sessions_) {
    if (session->has_ended() || session->connections > 0 || session->probe > now) continue;
    session->probe = now + kProbeEvery;
    std::for_each(session->peers.begin(), session->peers.end(), probe);
  }
}

std::size_t Sessions::count() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& row) { return !row.second->has_ended(); }));
}

void Sessions::remember(Session& session, std::uint64_t request, const proto::Envelope& reply, bool stored) {
  PIF_ASSERT(session.answers.empty() || session.answers.back().turn <= turn_, session.answers.back().turn, turn_);
  session.answers.push_back({request, reply.SerializeAsString(), turn_});
  session.answers_stored = false;
  session.answer_bytes += session.answers.back().reply.size();
  while (session.answers.size() > 1 && session.answers.front().turn != turn_ &&
         (session.answers.size() > kAnswersKept || session.answer_bytes > kAnswerBytesKept)) {
    drop_answers(session);
  }
  add_once(answered_, &session);
  if (stored) add_once(to_store_, &session);
}

void Sessions::drop_answers(Session& session) const {
  const std::size_t bytes = session.answers.front().reply.size();
  PIF_ASSERT(session.answers.front().turn < turn_ && session.answer_bytes >= bytes, session.answer_bytes, bytes);
  session.answer_bytes -= bytes;
  session.answers.pop_front();
}

Status Sessions::store_answers(std::int64_t wall) {
  for (Session* session : to_store_) {
    proto::StoredAnswer row;
    const auto& answers = session->answers;
    PIF_ASSERT(!answers.empty() && answers.back().turn == turn_, session->id, answers.size());
    std::size_t first = answers.size();
    while (first > 0 && (answers[first - 1].turn == turn_ || answers.size() - first < kAnswersStored)) --first;
    for (std::size_t i = first; i < answers.size(); ++i) {
      proto::StoredAnswer& to = i + 1 == answers.size() ? row : *row.add_earlier();
      to.set_request(answers[i].request);
      to.set_reply(answers[i].reply);
    }
    row.set_time(wall);
    PIF_TRY(rows_.put(kRecent, kv::key_u64(session->id), row));
    session->answers_stored = first == 0;
  }
  return {};
}

void Sessions::end_turn(bool failed) {
  for (Session* session : answered_) {
    if (failed) session->answers_stored = false;
    while (failed && !session->answers.empty() && session->answers.back().turn == turn_) {
      const std::size_t bytes = session->answers.back().reply.size();
      PIF_ASSERT(session->answer_bytes >= bytes, session->answer_bytes, bytes);
      session->answer_bytes -= bytes;
      session->answers.pop_back();
    }
  }
  answered_.clear();
  to_store_.clear();
  ++turn_;
}

Status Sessions::load_answers(Session& session) {
  if (session.answers_loaded) return {};
  PIF_TRY_VALUE(const auto payload, rows_.get(kRecent, kv::key_u64(session.id)));
  session.answers_loaded = true;
  if (!payload) return {};
  proto::StoredAnswer row;
  if (!row.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) {
    return fail(Code::kCorrupt, "the directory's table recent has a value that is no message");
  }
  for (const proto::StoredAnswer& answer : row.earlier())
    session.answers.push_back({answer.request(), answer.reply(), 0});
  session.answers.push_back({row.request(), row.reply(), 0});
  for (const Answer& answer : session.answers) session.answer_bytes += answer.reply.size();
  return {};
}

Result<bool> Sessions::prune(std::int64_t wall, std::size_t limit) {
  std::vector<std::string> old;
  std::string next;
  const std::string from = std::exchange(prune_from_, {});
  PIF_TRY(rows_.scan(kRecent, from, [&](std::string_view key, std::string_view payload) {
    if (limit-- == 0) {
      next = key;
      return false;
    }
    proto::StoredAnswer row;
    const bool good = row.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    if (!good || row.time() + kAnswersSeconds < wall) old.emplace_back(key);
    return true;
  }));
  PIF_ASSERT(next.empty() || next >= from, next.size(), from.size());
  for (const std::string& key : old) PIF_TRY(rows_.erase(kRecent, key));
  prune_from_ = std::move(next);
  return prune_from_.empty();
}

}  // namespace pif::server
