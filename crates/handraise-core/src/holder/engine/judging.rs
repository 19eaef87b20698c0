//! Submissions: what each amounts to, alone and in a batch, and what its sender is told.

use std::collections::BTreeSet;

use super::{Courier, End, Engine};
use crate::{
    ask::{AskId, Submission, SubmissionId},
    holder::{Delivery, Route, Verdict},
    time::Moment,
    words::{Outcome, Provenance},
};

impl Engine {
    /// Adjudicates a submission: the first valid one wins, everything later is told how it ended (D5, AC-12g). The
    /// same submission again gets the same verdict and delivers nothing.
    pub fn submit(
        &mut self,
        now: Moment,
        ask: &AskId,
        submission: &Submission,
        route: Route,
        courier: &mut dyn Courier,
    ) -> Verdict {
        self.advance(now, courier);
        match self.judge(ask, submission, route) {
            Ok(delivery) => self.deliver_submission(ask, &submission.id, delivery, courier),
            Err(verdict) => verdict,
        }
    }

    /// Adjudicates several submissions at once: all are delivered, or none (S44).
    ///
    /// # Errors
    /// The first entry that cannot be delivered, and why. Nothing was, unless the asking side went away between two
    /// deliveries of this batch.
    pub fn submit_batch(
        &mut self,
        now: Moment,
        batch: &[(AskId, Submission)],
        courier: &mut dyn Courier,
    ) -> Result<(), (usize, Verdict)> {
        self.advance(now, courier);
        let mut deliveries = Vec::with_capacity(batch.len());
        let mut asks = BTreeSet::new();
        for (index, (ask, submission)) in batch.iter().enumerate() {
            if !asks.insert(ask) {
                return Err((index, Verdict::Unsuitable("a batch answers each ask once")));
            }
            match self.judge(ask, submission, Route::Batch) {
                Ok(delivery) => deliveries.push((index, ask, &submission.id, delivery)),
                Err(Verdict::Delivered) => {}
                Err(verdict) => return Err((index, verdict)),
            }
        }
        for (index, ask, submission, delivery) in deliveries {
            match self.deliver_submission(ask, submission, delivery, courier) {
                Verdict::Delivered => {}
                verdict => return Err((index, verdict)),
            }
        }
        Ok(())
    }

    /// What a submission amounts to, or the verdict on it. Delivers nothing.
    fn judge(&mut self, ask: &AskId, submission: &Submission, route: Route) -> Result<Delivery, Verdict> {
        let Some(open) = self.open.get_mut(ask) else { return Err(self.ended_verdict(ask, &submission.id)) };
        if let Some(verdict) = open.judged.get(&submission.id) {
            return Err(verdict.clone());
        }
        if let Some(why) = open.unsuitable(route, submission) {
            return Err(Verdict::Unsuitable(why));
        }
        if submission.rejected {
            return Ok(Delivery::Decline);
        }
        open.form.answer(&submission.answers, open.rules).map(Delivery::Accept).map_err(|errors| {
            let verdict = Verdict::invalid(errors);
            open.judged.insert(submission.id.clone(), verdict.clone());
            verdict
        })
    }

    fn deliver_submission(
        &mut self,
        ask: &AskId,
        submission: &SubmissionId,
        delivery: Delivery,
        courier: &mut dyn Courier,
    ) -> Verdict {
        let outcome = match delivery {
            Delivery::Accept(_) => Outcome::Accept,
            Delivery::Decline => Outcome::Decline,
            Delivery::Cancel => Outcome::Cancel,
        };
        let end = End {
            outcome,
            provenance: Provenance::Client,
            reason: None,
            submission: Some(submission.clone()),
        };
        self.finish(ask, Some(delivery), end, courier);
        self.ended_verdict(ask, submission)
    }

    fn ended_verdict(&self, ask: &AskId, submission: &SubmissionId) -> Verdict {
        match self.ledger.get(ask) {
            Some(ended) if ended.submission.as_ref() == Some(submission) => Verdict::Delivered,
            ended => Verdict::Ended(ended.cloned()),
        }
    }

    /// What became of a submission whose verdict was lost. One that never arrived is [`Verdict::Unseen`], and will
    /// not be delivered should it arrive later: its sender was told that it was not.
    pub fn verdict(
        &mut self,
        now: Moment,
        ask: &AskId,
        submission: &SubmissionId,
        courier: &mut dyn Courier,
    ) -> Verdict {
        self.advance(now, courier);
        let Some(open) = self.open.get_mut(ask) else { return self.ended_verdict(ask, submission) };
        if let Some(verdict) = open.judged.get(submission) {
            return verdict.clone();
        }
        open.judged.insert(submission.clone(), Verdict::Unseen);
        Verdict::Unseen
    }
}
