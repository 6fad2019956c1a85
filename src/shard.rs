//! `--shard`: the share of a run's slices that one of several jobs computes.

use crate::error::{Result, messages};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

messages! {
    /// Errors of `--shard`.
    enum ShardError: Usage {
        Missing { index: usize, count: usize } =>
            "--shard: {index}/{count} does not exist";
            "count shards from 0, so that the last one of N is N-1/N",
        Malformed { text: String } => "--shard: `{text}` is neither I/N, such as 0/8, nor auto",
        NotANumber { variable: String, text: String } => "--shard auto: {variable} is `{text}`, expected a number"; "give I/N",
        Incomplete { present: &'static str, missing: String } =>
            "--shard auto: {present} is set, but {missing} is not"; "give I/N",
        Uneven { task: usize, count: usize, first: usize, last: usize, step: usize } =>
            "--shard auto: task {task} of the {count} tasks from {first} to {last} in steps of {step}: these are not numbers in \
             even steps";
            "use an --array such as 0-7, or give I/N",
        NotInSlurm =>
            "--shard auto: neither SLURM_ARRAY_TASK_ID nor SLURM_PROCID is set";
            "run it in a Slurm job array or with srun, or give I/N",
        RankTooLarge { rank: usize, tasks: usize } =>
            "--shard auto: SLURM_PROCID {rank} is not below SLURM_NTASKS {tasks}"; "give I/N",
        BatchScript { tasks: usize } =>
            "--shard auto: this is the batch script itself, one process for {tasks} tasks";
            "start fbp with srun, or give I/N",
    }
}

/// Share `index` of `count` shares, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    pub index: usize,
    pub count: usize,
}

impl Shard {
    /// Parses `I/N`, or `auto` for a share that Slurm's variables give, which `variable` looks up.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard> {
        if text.trim() == "auto" {
            return Shard::of_slurm(variable);
        }
        let number = |part: &str| part.trim().parse::<usize>().ok();
        let parts = text.split_once('/').and_then(|(index, count)| Some((number(index)?, number(count)?)));
        match parts {
            Some((index, count)) if index < count => Ok(Shard { index, count }),
            Some((index, count)) => Err(ShardError::Missing { index, count }.into()),
            None => Err(ShardError::Malformed { text: text.into() }.into()),
        }
    }

    /// Returns the share of this task in a Slurm job array, or of this rank among those started by srun.
    fn of_slurm(variable: impl Fn(&str) -> Option<String>) -> Result<Shard> {
        let optional = |name: &str| -> Result<Option<usize>> {
            let Some(text) = variable(name) else { return Ok(None) };
            match text.trim().parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ShardError::NotANumber { variable: name.into(), text }.into()),
            }
        };
        let needed = |name: &str, present: &'static str| -> Result<usize> {
            optional(name)?.ok_or_else(|| ShardError::Incomplete { present, missing: name.into() }.into())
        };
        if let Some(id) = optional("SLURM_ARRAY_TASK_ID")? {
            let [first, last, count] =
                ["MIN", "MAX", "COUNT"].map(|word| needed(&format!("SLURM_ARRAY_TASK_{word}"), "SLURM_ARRAY_TASK_ID"));
            let (first, last, count) = (first?, last?, count?);
            let step = optional("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let index = id.checked_sub(first).filter(|past| past % step == 0).map(|past| past / step);
            let even = last.checked_sub(first).is_some_and(|past| past / step + 1 == count);
            return match index {
                Some(index) if even && index < count => Ok(Shard { index, count }),
                _ => Err(ShardError::Uneven { task: id, count, first, last, step }.into()),
            };
        }
        let Some(index) = optional("SLURM_PROCID")? else {
            return Err(ShardError::NotInSlurm.into());
        };
        let count = needed("SLURM_NTASKS", "SLURM_PROCID")?;
        if index >= count {
            return Err(ShardError::RankTooLarge { rank: index, tasks: count }.into());
        }
        if count > 1 && variable("SLURM_JOB_ID").is_some() && variable("SLURM_STEP_ID").is_none() {
            return Err(ShardError::BatchScript { tasks: count }.into());
        }
        Ok(Shard { index, count })
    }

    /// Returns this share of `length` items: a contiguous range; the lengths of shares differ by at most one.
    pub fn of(self, length: usize) -> Range<usize> {
        let start = |index: usize| (index as u128 * length as u128 / self.count as u128) as usize;
        start(self.index)..start(self.index + 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(variables: &[(&str, &str)]) -> Result<Shard> {
        Shard::parse("auto", |name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_owned()))
    }

    fn message(shard: Result<Shard>) -> String {
        let error = shard.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().starts_with("--shard"), "{error}");
        error.to_string()
    }

    #[test]
    fn shares_cover_and_differ_by_one() {
        for count in 1..12 {
            for length in 0..30 {
                let shares: Vec<_> = (0..count).map(|index| Shard { index, count }.of(length)).collect();
                assert_eq!(shares.iter().cloned().flatten().collect::<Vec<_>>(), (0..length).collect::<Vec<_>>());
                assert!(shares.iter().all(|s| s.len() == length / count || s.len() == length.div_ceil(count)));
            }
        }
        let last = Shard { index: usize::MAX - 1, count: usize::MAX };
        assert_eq!(last.of(usize::MAX), usize::MAX - 1..usize::MAX);
    }

    #[test]
    fn words() {
        let parse = |text| Shard::parse(text, |_| None);
        assert_eq!(parse("0/1").unwrap(), Shard { index: 0, count: 1 });
        assert_eq!(parse(" 3 / 8 ").unwrap(), Shard { index: 3, count: 8 });
        for text in ["8/8", "0/0", "9/8"] {
            assert!(message(parse(text)).contains("does not exist"));
        }
        for text in ["", "3", "a/b", "-1/4", "1/4/2", "1.5/4", "99999999999999999999/4", "Auto"] {
            assert!(message(parse(text)).contains("I/N"));
        }
        assert!(message(parse("auto")).contains("SLURM_ARRAY_TASK_ID"));
    }

    #[test]
    fn tasks_of_an_array() {
        let task = |id, min, max, count, step| {
            auto(&[
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_STEP", step),
                // set in every job, and of no meaning here
                ("SLURM_PROCID", "0"),
                ("SLURM_NTASKS", "1"),
            ])
        };
        assert_eq!(task("3", "0", "7", "8", "1").unwrap(), Shard { index: 3, count: 8 });
        assert_eq!(task("1", "1", "4", "4", "1").unwrap(), Shard { index: 0, count: 4 });
        assert_eq!(task("15", "5", "20", "4", "5").unwrap(), Shard { index: 2, count: 4 });
        assert_eq!(task("9", "1", "10", "3", "4").unwrap(), Shard { index: 2, count: 3 });
        for [id, min, max, count, step] in
            [["7", "1", "7", "3", "1"], ["3", "0", "8", "3", "4"], ["0", "1", "4", "4", "1"], ["9", "0", "7", "8", "1"]]
        {
            assert!(message(task(id, min, max, count, step)).contains("even steps"));
        }
        assert!(message(task("one", "0", "7", "8", "1")).contains("SLURM_ARRAY_TASK_ID"));
        let lone = auto(&[("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_MIN", "0")]);
        assert!(message(lone).contains("SLURM_ARRAY_TASK_MAX is not"));
    }

    #[test]
    fn ranks() {
        let rank = |id, count| auto(&[("SLURM_PROCID", id), ("SLURM_NTASKS", count)]);
        assert_eq!(rank("2", "4").unwrap(), Shard { index: 2, count: 4 });
        assert!(message(rank("4", "4")).contains("SLURM_NTASKS"));
        assert!(message(auto(&[("SLURM_PROCID", "0")])).contains("SLURM_NTASKS"));
        let job = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0")];
        assert_eq!(auto(&job).unwrap(), Shard { index: 0, count: 4 });
        assert!(message(auto(&job[..3])).contains("srun"));
    }
}
