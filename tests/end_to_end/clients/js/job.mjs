// What the JavaScript programs share: the job that they are given and the result that they print.

export const task = JSON.parse(process.argv[2]);
task.group = `${task.name}-group`;
task.tx = `${task.name}-tx`;

export function records(series, first, last) {
  const result = [];
  for (let i = first; i < last; ++i) {
    const value = `${series} ${i} ${'x'.repeat(i % 200)}`;
    result.push({partition: i % task.partitions, key: `${series}-${i}`, value});
  }
  return result;
}

// In three parts.
export function plainRecords() {
  const bounds = [0, 1, 2, 3].map((part) => Math.floor((task.records * part) / 3));
  return [0, 1, 2].map((part) => records('plain', bounds[part], bounds[part + 1]));
}

// {partition: [offset of the first record, offset of the last one]}, of what was sent and each partition's first offset.
export function ranges(sent, firstOffsets) {
  const result = {};
  for (const {partition} of sent) {
    const first = Number(firstOffsets[partition]);
    result[partition] = [first, (result[partition]?.[1] ?? first - 1) + 1];
  }
  return result;
}

// {partition: offset behind the last record}, of rows [partition, offset, key, value]
export function nextOffsets(read) {
  const result = {};
  for (const [partition, offset] of read) result[partition] = Math.max(result[partition] ?? 0, offset + 1);
  return result;
}

// The job's groups, by what follows its name.
export function ownGroups(groups) {
  return groups.filter((group) => group.startsWith(task.name)).map((group) => group.slice(task.name.length)).sort();
}

export function finish(result) {
  result.read.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  console.log(JSON.stringify(result));
  process.exit(0); // some clients keep a timer
}
