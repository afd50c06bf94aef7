// SPDX-License-Identifier: Apache-2.0
#include "kafka/client.hpp"

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <random>
#include <thread>

#include "kafka/admin.hpp"

namespace driftd::kafka {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstTry{1000};  // before a broker has ever answered

using Partitions = std::unique_ptr<rd_kafka_topic_partition_list_t, decltype(&rd_kafka_topic_partition_list_destroy)>;
using Queue = std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)>;

/// Returns true for a valid topic name; with another one the library retries until the time-out.
bool legal(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name != "." && name != ".." && name.size() <= 249 &&
         std::all_of(name.begin(), name.end(), plain);
}

Metadata read_metadata(const rd_kafka_metadata_t& from) {
  Metadata out;
  for (int b = 0; b < from.broker_cnt; ++b)
    out.brokers.push_back({from.brokers[b].id, from.brokers[b].host, from.brokers[b].port});
  for (int t = 0; t < from.topic_cnt; ++t) {
    const auto& given = from.topics[t];
    Topic topic{given.topic, outcome_of(given.err), {}};
    for (int p = 0; p < given.partition_cnt; ++p) {
      const auto& part = given.partitions[p];
      topic.partitions.push_back({part.id,
                                  part.leader,
                                  {part.replicas, part.replicas + part.replica_cnt},
                                  {part.isrs, part.isrs + part.isr_cnt}});
    }
    out.topics.push_back(std::move(topic));
  }
  return out;
}

/// Returns true for errors of a partition that only an existing topic can have.
bool is_there(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
         error == RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE;
}
bool nobody_answered(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT ||
         error == RD_KAFKA_RESP_ERR__WAIT_CACHE || error == RD_KAFKA_RESP_ERR__IN_PROGRESS;
}

}  // namespace

/// The library call blocks and cannot be cancelled, so it runs on a thread of its own, which owns what it uses and
/// never calls the host.
struct Client::MetadataRequest {
  explicit MetadataRequest(std::shared_ptr<Handle> handle) : handle(std::move(handle)) {}
  ~MetadataRequest() {
    if (answer != nullptr) rd_kafka_metadata_destroy(answer);
  }
  /// Requests all topics, or the one of that name. The latter asks for an offset of its first partition: a topic that
  /// is asked for by a topic handle is never forgotten by the library, which then asks every second for those that do
  /// not exist.
  void run(const std::string& name, int most_ms) {
    const rd_kafka_metadata_t* got = nullptr;
    rd_kafka_resp_err_t result{}, of_topic{};
    if (name.empty()) {
      result = rd_kafka_metadata(handle->get(), 1, nullptr, &got, most_ms);
    } else {
      const Partitions one(rd_kafka_topic_partition_list_new(1), &rd_kafka_topic_partition_list_destroy);
      rd_kafka_topic_partition_list_add(one.get(), name.c_str(), 0)->offset = 0;  // the first since 1970
      result = rd_kafka_offsets_for_times(handle->get(), one.get(), most_ms);
      of_topic = one->elems[0].err;
      if (of_topic == RD_KAFKA_RESP_ERR_NO_ERROR && result > 0) of_topic = result;  // of the one that was asked about
      if (of_topic > 0) result = RD_KAFKA_RESP_ERR_NO_ERROR;                        // answer of a broker
      if (of_topic < 0) result = of_topic;                                          // error of the library itself
    }
    const std::lock_guard lock(mutex);
    error = result;
    topic = of_topic;
    answer = got;
    done = true;
    ended.notify_all();
  }

  std::shared_ptr<Handle> handle;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR, topic = RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_metadata_t* answer = nullptr;
};

std::shared_ptr<const Client::MetadataRequest> Client::request(sdk::Call& call, const std::string& topic,
                                                               const Wait& wait, milliseconds timeout) const {
  call.permit("requests");
  auto question = std::make_shared<MetadataRequest>(handle_);
  const int limit = static_cast<int>(std::max<std::int64_t>(std::min(timeout, wait.left()).count(), 1));
  std::thread([question, topic, limit] { question->run(topic, limit); }).detach();
  std::unique_lock lock(question->mutex);
  while (!question->done) {
    lock.unlock();
    const auto slice = wait.slice(*handle_);
    lock.lock();
    question->ended.wait_for(lock, slice, [&] { return question->done; });
  }
  const auto error = question->error;
  if (nobody_answered(error)) return nullptr;
  const Outcome outcome = outcome_of(error);
  if (!outcome.ok()) throw sdk::Failure(outcome.code, "asking for metadata: " + outcome.text);
  handle_->note_answer();
  return question;
}

std::string Client::unused_topic_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::random_device random;
  std::string out;
  for (int i = 0; i < 24; ++i) out.push_back(kLetters[random() % kLetters.size()]);
  return out;
}

std::string Client::cluster_id() const {
  char* id = rd_kafka_clusterid(handle_->get(), 0);  // known from the last answer
  std::string out = id == nullptr ? "" : id;
  rd_kafka_mem_free(handle_->get(), id);
  return out;
}

void Client::connect(sdk::Call& call, milliseconds timeout) const {
  if (handle_->has_answered()) return;
  const Wait wait(call, timeout, DRIFTD_UNAVAILABLE, "connecting to " + settings_.bootstrap.front());
  for (milliseconds one = kFirstTry; request(call, unused_topic_name(), wait, one) == nullptr; one *= 2)
    wait.slice(*handle_);
}

Metadata Client::metadata(sdk::Call& call) const {
  const Wait wait(call, settings_.call, DRIFTD_DEADLINE, "asking for the topics");
  std::shared_ptr<const MetadataRequest> got;
  while ((got = request(call, "", wait, settings_.call)) == nullptr) wait.slice(*handle_);
  Metadata out = read_metadata(*got->answer);
  out.cluster_id = cluster_id();
  return out;
}

std::string Client::identity(sdk::Call& call, milliseconds timeout) const {
  const Wait wait(call, timeout, DRIFTD_UNAVAILABLE, "asking " + settings_.bootstrap.front());
  while (request(call, unused_topic_name(), wait, timeout) == nullptr) wait.slice(*handle_);
  return cluster_id();
}

Presence Client::topic_presence(sdk::Call& call, const std::vector<std::string>& names) const {
  Presence out;
  for (const auto& name : names) {
    if (!legal(name)) {
      out[name] = {DRIFTD_NOT_FOUND, "a name that no topic can have"};
      continue;
    }
    const Wait wait(call, settings_.call, DRIFTD_DEADLINE, "asking for topic " + name);
    std::shared_ptr<const MetadataRequest> got;
    while ((got = request(call, name, wait, settings_.call)) == nullptr) wait.slice(*handle_);
    // This may come from the library's cache; a new client asks again.
    if (got->topic == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) {
      throw sdk::Failure(DRIFTD_UNAVAILABLE, "topic " + name + ": no broker leads its first partition");
    }
    out[name] = is_there(got->topic) ? Outcome{} : outcome_of(got->topic);
  }
  return out;
}

Client::Event Client::admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, const Send& send) const {
  return admin(call, op, doing, settings_.call, send);
}

Client::Event Client::admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, milliseconds timeout,
                            const Send& send) const {
  call.permit("requests");
  const Wait wait(call, timeout, DRIFTD_DEADLINE, doing);
  const Queue queue(rd_kafka_queue_new(handle_->get()), &rd_kafka_queue_destroy);
  const Options options(*handle_, op, timeout);
  send(options.get(), queue.get());
  for (;;) {
    const auto slice = wait.slice(*handle_);
    rd_kafka_event_t* event = rd_kafka_queue_poll(queue.get(), static_cast<int>(slice.count()));
    if (event == nullptr) continue;
    Event out(event, &rd_kafka_event_destroy);
    const auto error = rd_kafka_event_error(event);
    if (error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT) {
      throw sdk::Failure(error == RD_KAFKA_RESP_ERR__TRANSPORT ? DRIFTD_UNAVAILABLE : DRIFTD_DEADLINE,
                         doing + ": " + outcome_of(error, rd_kafka_event_error_string(event)).text);
    }
    handle_->note_answer();
    return out;
  }
}

std::vector<Configs> Client::topic_configs(sdk::Call& call, const std::vector<std::string>& names) const {
  const Resources wanted(RD_KAFKA_RESOURCE_TOPIC, names);
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "asking for the configuration of topics",
                            [&](auto* options, auto* queue) {
                              rd_kafka_DescribeConfigs(handle_->get(), wanted.get(), wanted.size(), options, queue);
                            });
  const Outcome whole = outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()));
  std::map<std::string, Configs> found;
  if (whole.ok()) found = read_configs(*rd_kafka_event_DescribeConfigs_result(event.get()));
  std::vector<Configs> out;
  for (const auto& name : names) {
    const auto at = found.find(name);
    const Outcome none = whole.ok() ? Outcome{DRIFTD_CORRUPT, "the answer leaves this topic out"} : whole;
    out.push_back(at == found.end() ? Configs{name, none, {}} : std::move(at->second));
  }
  return out;
}

Configs Client::broker_config(sdk::Call& call, const std::string& name, milliseconds timeout) const {
  const Resources wanted(RD_KAFKA_RESOURCE_BROKER, {name});
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "asking for the configuration of broker " + name,
                            timeout, [&](auto* options, auto* queue) {
                              rd_kafka_DescribeConfigs(handle_->get(), wanted.get(), wanted.size(), options, queue);
                            });
  const Outcome outcome = outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()));
  if (!outcome.ok()) return {name, outcome, {}};
  auto found = read_configs(*rd_kafka_event_DescribeConfigs_result(event.get()));
  if (found.count(name) == 0) return {name, {DRIFTD_CORRUPT, "the answer leaves this broker out"}, {}};
  return std::move(found[name]);
}

std::vector<Configs> Client::broker_configs(sdk::Call& call, const std::vector<std::int32_t>& ids) const {
  std::vector<Configs> out;
  milliseconds timeout = settings_.call;
  for (const auto id : ids) {
    const std::string name = std::to_string(id);
    try {
      out.push_back(broker_config(call, name, timeout));
    } catch (const sdk::Failure& failure) {  // one broker that is gone, or hangs, must not hide the others
      const bool call_is_over = Wait(call, settings_.call, DRIFTD_DEADLINE, "").left().count() == 0;
      const bool hangs = failure.code == DRIFTD_DEADLINE && ids.size() > 1 && !call_is_over;
      if (failure.code != DRIFTD_UNAVAILABLE && !hangs) throw;
      out.push_back({name, {DRIFTD_UNAVAILABLE, failure.what()}, {}});
      timeout = std::min(settings_.call, settings_.connect);
    }
  }
  return out;
}

Acls Client::acls(sdk::Call& call) const {
  const AclFilter any;
  const Event event =
      admin(call, RD_KAFKA_ADMIN_OP_DESCRIBEACLS, "asking for the ACLs",
            [&](auto* options, auto* queue) { rd_kafka_DescribeAcls(handle_->get(), any.get(), options, queue); });
  const auto error = rd_kafka_event_error(event.get());
  Acls out;
  out.open = error == RD_KAFKA_RESP_ERR_SECURITY_DISABLED;
  if (out.open) return out;
  out.outcome = outcome_of(error, rd_kafka_event_error_string(event.get()));
  if (out.outcome.ok()) out.bindings = read_acls(*rd_kafka_event_DescribeAcls_result(event.get()));
  return out;
}

Groups Client::groups(sdk::Call& call) const {
  const Event event =
      admin(call, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, "asking for the consumer groups",
            [&](auto* options, auto* queue) { rd_kafka_ListConsumerGroups(handle_->get(), options, queue); });
  Groups out{outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get())), {}};
  if (out.outcome.ok()) out = read_groups(*rd_kafka_event_ListConsumerGroups_result(event.get()));
  return out;
}

#if RD_KAFKA_VERSION >= 0x020300ff
bool has_topic_ids() { return true; }

std::map<std::string, std::string> Client::topic_ids(sdk::Call& call, const std::vector<std::string>& names) const {
  std::map<std::string, std::string> out;
  for (std::size_t from = 0; from < names.size(); from += kBatch) {
    std::vector<const char*> some;
    for (std::size_t i = from; i < std::min(names.size(), from + kBatch); ++i) some.push_back(names[i].c_str());
    const std::unique_ptr<rd_kafka_TopicCollection_t, decltype(&rd_kafka_TopicCollection_destroy)> wanted(
        rd_kafka_TopicCollection_of_topic_names(some.data(), some.size()), &rd_kafka_TopicCollection_destroy);
    const Event event = admin(
        call, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, "asking for the ids of topics",
        [&](auto* options, auto* queue) { rd_kafka_DescribeTopics(handle_->get(), wanted.get(), options, queue); });
    if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    out.merge(read_topic_ids(*rd_kafka_event_DescribeTopics_result(event.get())));
  }
  return out;
}
#else
bool has_topic_ids() { return false; }
std::map<std::string, std::string> Client::topic_ids(sdk::Call&, const std::vector<std::string>&) const { return {}; }
#endif

#if RD_KAFKA_VERSION >= 0x020200ff
bool has_scram_users() { return true; }

ScramUsers Client::scram_users(sdk::Call& call) const {
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBEUSERSCRAMCREDENTIALS, "asking for the SCRAM users",
                            [&](auto* options, auto* queue) {
                              rd_kafka_DescribeUserScramCredentials(handle_->get(), nullptr, 0, options, queue);
                            });
  ScramUsers out{outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get())), {}};
  if (out.outcome.ok()) out = read_scram_users(*rd_kafka_event_DescribeUserScramCredentials_result(event.get()));
  return out;
}
#else
bool has_scram_users() { return false; }
ScramUsers Client::scram_users(sdk::Call&) const {
  return {{DRIFTD_UNSUPPORTED, "this build's librdkafka is older than 2.2"}, {}};
}
#endif

}  // namespace driftd::kafka
