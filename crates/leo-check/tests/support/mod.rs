//! What tests of certificates have in common: two networks, what is claimed of them, and both checkers' answers.

use std::path::Path;

use leo_check::{
    Certificate, Correspondence, Expression, HashedModel, Link, Proof, Refusal, UnitLink, Verified, verify,
    verify_exactly,
};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Domain, Network, Numbers, Shape, ValueId};

/// A test that can fail.
pub type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Weights, a row for each unit, and biases.
pub type Layer<'a> = (&'a [&'a [f64]], &'a [f64]);

/// Layers with ReLUs between them.
pub fn chain(layers: &[Layer<'_>]) -> Anything<Document> {
    let mut builder = Network::builder(Shape::new([layers[0].0[0].len()])?);
    let mut value = ValueId::INPUT;
    for (index, (rows, bias)) in layers.iter().enumerate() {
        let dense = Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(bias.to_vec()))?;
        value = builder.add(format!("fc{index}"), dense, &[value])?;
        if index + 1 < layers.len() {
            value = builder.add(format!("relu{index}"), Relu, &[value])?;
        }
    }
    let export = Export { float: Float::F64, input: "x".to_owned(), outputs: vec!["y".to_owned()], metadata: vec![] };
    Ok(Document::from_network(&builder.finish(vec![value])?, &export)?)
}

/// What is claimed of two networks on a box that is the same for each input.
pub struct Case {
    pub networks: [Document; 2],
    pub domain: (f64, f64),
    pub proof: Proof,
    pub claims: Vec<Vec<Expression>>,
    pub roles: Vec<Vec<Expression>>,
    pub delta: f64,
}

impl Case {
    /// The files, and what is claimed of them.
    pub fn certificate(&self) -> Anything<([HashedModel; 2], Certificate)> {
        let sealed = |document: &Document| Ok(HashedModel::from_bytes(document.to_bytes()?, Path::new("a.onnx"))?);
        let [first, second]: [Anything<HashedModel>; 2] = self.networks.each_ref().map(sealed);
        let files = [first?, second?];
        let inputs = self.networks[0].network().input().elements();
        let domain = Domain::uniform(inputs, self.domain.0, self.domain.1)?;
        let (claims, roles) = (self.claims.clone(), self.roles.clone());
        let pairs = Correspondence { anchors: Vec::new(), claims, roles };
        let link = Link::Units(UnitLink::new(&domain, self.networks.each_ref(), &self.proof, &pairs, true)?);
        let [first, second] = files.each_ref().map(|file| file.sha256.clone());
        Ok((files, Certificate::new(first, second, &domain, vec![Numbers::Same(self.delta)], vec![link])))
    }

    /// What both checkers say of the certificate as it is read again: the same.
    pub fn check(&self) -> Anything<Result<Verified, Refusal>> {
        let ([first, second], certificate) = self.certificate()?;
        let certificate = Certificate::from_bytes(&certificate.to_bytes()?)?;
        let checked = verify(&first, &second, &certificate, &());
        assert_eq!(checked.is_ok(), verify_exactly(&first, &second, &certificate, &()).is_ok(), "{checked:?}");
        Ok(checked)
    }
}
